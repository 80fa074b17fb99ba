package doctor

import (
	"slices"
	"strings"

	"delaybroker/broker/inspect"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// permissions are the server's rules for a user. Without rules, all subjects are allowed.
type permissions struct {
	Publish   *rules `json:"publish"`
	Subscribe *rules `json:"subscribe"`
}

type rules struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

func (r *rules) allows(subject string) bool {
	matches := func(pattern string) bool { return message.Match(pattern, subject) }
	return r == nil || !slices.ContainsFunc(r.Deny, matches) &&
		(len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, matches))
}

// missing returns the permissions that the user lacks: to publish on the subjects of the grants, and to subscribe to
// answers. If a grant has several subjects, and the user may publish on none of them, refused names the grant's pattern
// instead.
func (p permissions) missing(grants []grant, inbox string) []string {
	var all []string
	for _, g := range grants {
		refused := slices.DeleteFunc(slices.Clone(g.subjects), p.Publish.allows)
		if len(refused) == len(g.subjects) && len(refused) > 1 {
			refused = []string{g.pattern}
		}
		for _, subject := range refused {
			all = append(all, "Publish to "+subject)
		}
	}
	if answers := inbox + ".x.y"; !p.Subscribe.allows(answers) {
		all = append(all, "Subscription to "+answers)
	}
	return all
}

// A grant is a permission that the broker needs: a pattern, and the subjects in it on which the broker publishes.
type grant struct {
	link     string
	pattern  string
	subjects []string
}

// grants returns the publish permissions that the given links of the broker need, except the permissions for targets.
// test/permissions has the same permissions as files.
func (f Facts) grants(names message.Names, links ...string) []grant {
	var lanes, purged, all, hops, dead, ownersStream, owners, timers []string
	for _, s := range f.want {
		all = append(all, s.Stream)
		switch s.Kind {
		case streams.Owners:
			ownersStream = append(ownersStream, s.Stream)
			owners = append(owners, names.OwnersTable(), names.OwnersBeat()+"x", names.OwnersCall())
			continue
		case streams.Level:
			hops = append(hops, names.Hop(s.Name, "x"))
		case streams.Retry:
			hops = append(hops, names.Retry(s.Name, "x"))
		case streams.Journal:
			hops = append(hops, names.JournalSubject())
			continue
		case streams.Paused:
			hops = append(hops, names.PausedMessage("x", "x"))
		case streams.Timers:
			timers = append(timers, names.Timer("x", "x"))
			hops = append(hops, names.TimersCursor())
			lanes = append(lanes, s.Stream)
			continue
		case streams.Dead:
			dead = append(dead, names.Dead(message.Undelivered, "x"), names.Dead(message.BadTarget, ""))
			continue
		}
		lanes, purged = append(lanes, s.Stream), append(purged, s.Stream)
	}
	list := f.apiPrefix + ".STREAM.LIST"
	needed := []grant{
		{"control", list, []string{list}}, {"write", names.SysFilter(), hops}, {"write", names.DeadFilter(), dead},
	}
	// add adds the requests about each of the streams. Suffix follows the stream's name in the subject. A * in suffix
	// stands for a consumer.
	add := func(link, verb, suffix string, streams []string) {
		added := grant{link: link, pattern: f.apiPrefix + "." + verb + ".*" + suffix}
		for _, s := range streams {
			consumer := strings.Replace(suffix, "*", lane.ConsumerPrefix+"x", 1)
			added.subjects = append(added.subjects, f.apiPrefix+"."+verb+"."+s+consumer)
		}
		needed = append(needed, added)
	}
	add("control", "STREAM.INFO", "", lanes)
	add("control", "STREAM.PURGE", "", slices.Concat(purged, ownersStream))
	add("control", "STREAM.MSG.GET", "", slices.Concat(lanes, ownersStream))
	add("control", "STREAM.MSG.DELETE", "", lanes)
	add("read", "STREAM.INFO", "", lanes)
	add("read", "STREAM.MSG.GET", "", lanes)
	add("read", "CONSUMER.CREATE", ".*", lanes)
	add("read", "CONSUMER.DELETE", ".*", lanes)
	add("read", "CONSUMER.MSG.NEXT", ".*", lanes)
	if len(timers) > 0 {
		needed = append(needed, grant{"write", names.TimerFilter(), timers})
	}
	for _, subject := range owners {
		needed = append(needed, grant{"control", subject, []string{subject}})
	}
	if f.Config.Provision && f.Infos != nil { // the broker requests only necessary changes
		missing := streams.Compare(f.want, f.Infos).Missing
		add("control", "STREAM.CREATE", "", missing)
		add("control", "STREAM.UPDATE", "", slices.DeleteFunc(all, func(s string) bool {
			return slices.Contains(missing, s) || !f.differs(s)
		}))
	}
	return slices.DeleteFunc(needed, func(g grant) bool { return !slices.Contains(links, g.link) })
}

// differs reports whether the configuration would change a stream's subjects or retention time.
func (f Facts) differs(stream string) bool {
	want, wanted := streams.SpecOf(f.want, stream)
	if !wanted {
		return false
	}
	has := f.Infos[stream].Config
	return len(streams.Subtract(want.Subjects, has.Subjects)) > 0 || want.MaxAge != has.MaxAge && want.MaxAge > 0
}

// refusedCommands returns the operators' commands for which the user lacks publish permissions.
func (f Facts) refusedCommands(names message.Names) []string {
	var all []string
	dead := f.apiPrefix + ".STREAM.MSG.DELETE." + names.DeadStream()
	for _, c := range []struct {
		commands string
		needs    []string
	}{
		{"where, pending, retrying, ahead and journal", []string{
			f.apiPrefix + ".CONSUMER.CREATE." + names.DeadStream() + ".x",
			f.apiPrefix + ".CONSUMER.MSG.NEXT." + names.DeadStream() + ".x",
		}},
		{"timers and schedules", []string{names.Timer("x", "x")}},
		{"dead rm", []string{dead}},
		{"dead resend", []string{dead, names.Retry(inspect.ShortestRetry(f.want), "x")}},
		{"pause and resume", []string{names.PausesRecord()}},
	} {
		if slices.ContainsFunc(c.needs, func(s string) bool { return !f.user.Permissions.Publish.allows(s) }) {
			all = append(all, c.commands)
		}
	}
	return all
}

// refusedCalls returns the subject of the calls between instances, if the user has no permission to subscribe to it.
func (f Facts) refusedCalls(names message.Names) []string {
	if f.Config.MaxOwners == 0 || f.user.Permissions.Subscribe.allows(names.OwnersCall()) {
		return nil
	}
	return []string{"Subscription to " + names.OwnersCall()}
}

// refusedAnswers returns the permissions for answers to operators that the user lacks. A broker works without them.
func (f Facts) refusedAnswers(names message.Names) []string {
	var all []string
	if !f.user.Permissions.Publish.allows(names.StatusAnswers() + "x") {
		all = append(all, "Publish to "+names.StatusFilter())
	}
	calls := []string{names.StatusCall()}
	if _, ok := streams.SpecOfKind(f.want, streams.Timers); ok {
		calls = append(calls, names.TimerCall("get")+"x.x", names.TimersCall(), names.CancelAllCall(), names.ShiftCall())
	}
	calls = append(calls, f.Config.Schedules.Subjects()...)
	for _, subject := range calls {
		if !f.user.Permissions.Subscribe.allows(subject) {
			all = append(all, "Subscription to "+subject)
		}
	}
	return all
}

// patterns shortens a list of subjects. If several subjects differ only in their last token, * replaces that token.
func patterns(subjects []string) []string {
	count := make(map[string]int)
	parent := func(subject string) string { return subject[:strings.LastIndexByte(subject, '.')+1] }
	for _, s := range subjects {
		count[parent(s)]++
	}
	var all []string
	for _, s := range subjects {
		if p := parent(s); p != "" && count[p] > 1 {
			s = p + "*"
		}
		all = append(all, s)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
