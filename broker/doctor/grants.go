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

// missingRights returns the permissions that the user lacks: to publish on the subjects of the grants, and to subscribe
// to answers. If a grant has several subjects and the user lacks them all, the result has the pattern of the grant
// instead.
func (p permissions) missingRights(grants []grant, inbox string) []string {
	var refusals []string
	for _, g := range grants {
		subjects := slices.DeleteFunc(slices.Clone(g.subjects), p.Publish.allows)
		if len(subjects) == len(g.subjects) && len(subjects) > 1 {
			subjects = []string{g.pattern}
		}
		for _, subject := range subjects {
			refusals = append(refusals, "Publish to "+subject)
		}
	}
	if answers := inbox + ".x.y"; !p.Subscribe.allows(answers) {
		refusals = append(refusals, "Subscription to "+answers)
	}
	return refusals
}

// A grant is a permission that the broker needs: a pattern, and examples of its subjects on which the broker publishes.
type grant struct {
	link     string
	pattern  string
	subjects []string
}

// grants returns the permissions to publish that these links of the broker need, except the permissions for targets.
// The files in test/permissions grant them.
func (f Facts) grants(links ...string) []grant {
	var lanes, purged, allStreams, hops, dead, ownersStream, owners, timers []string
	for _, s := range f.want {
		allStreams = append(allStreams, s.Stream)
		switch s.Kind {
		case streams.Owners:
			ownersStream = append(ownersStream, s.Stream)
			owners = append(owners, f.names.OwnersClaim(), f.names.OwnersCalls()+"x")
			continue
		case streams.Level:
			hops = append(hops, f.names.Hop(s.Name, "x"))
		case streams.Retry:
			hops = append(hops, f.names.Retry(s.Name, "x"))
		case streams.Journal:
			hops = append(hops, f.names.JournalSubject())
			continue
		case streams.Paused:
			hops = append(hops, f.names.PausedMessage("x", "x"))
		case streams.Timers:
			timers = append(timers, f.names.Timer("x", "x"))
			hops = append(hops, f.names.TimersCursor())
			lanes = append(lanes, s.Stream)
			continue
		case streams.Dead:
			dead = append(dead, f.names.Dead(message.Undelivered, "x"), f.names.Dead(message.BadTarget, ""))
			continue
		}
		lanes, purged = append(lanes, s.Stream), append(purged, s.Stream)
	}
	list := f.apiPrefix + ".STREAM.LIST"
	grants := []grant{
		{"control", list, []string{list}}, {"write", f.names.SysFilter(), hops}, {"write", f.names.DeadFilter(), dead},
	}
	// add adds a grant for an operation of the JetStream API on each of the streams. Suffix follows the stream's name in
	// the subject. A * in suffix stands for the name of a consumer.
	add := func(link, operation, suffix string, streams []string) {
		request := grant{link: link, pattern: f.apiPrefix + "." + operation + ".*" + suffix}
		for _, s := range streams {
			consumer := strings.Replace(suffix, "*", lane.ConsumerPrefix+"x", 1)
			request.subjects = append(request.subjects, f.apiPrefix+"."+operation+"."+s+consumer)
		}
		grants = append(grants, request)
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
		grants = append(grants, grant{"write", f.names.TimerFilter(), timers})
	}
	for _, subject := range owners {
		grants = append(grants, grant{"control", subject, []string{subject}})
	}
	if f.Config.Provision && f.Infos != nil { // the broker requests only necessary changes
		missing := streams.Compare(f.want, f.Infos).MissingStreams
		add("control", "STREAM.CREATE", "", missing)
		add("control", "STREAM.UPDATE", "", slices.DeleteFunc(allStreams, func(s string) bool {
			return slices.Contains(missing, s) || !f.differs(s)
		}))
	}
	return slices.DeleteFunc(grants, func(g grant) bool { return !slices.Contains(links, g.link) })
}

// differs reports whether the configuration adds subjects to a stream, or changes its MaxAge to a value above zero.
func (f Facts) differs(stream string) bool {
	want, wanted := streams.SpecOf(f.want, stream)
	if !wanted {
		return false
	}
	current := f.Infos[stream].Config
	return len(streams.Subtract(want.Subjects, current.Subjects)) > 0 || want.MaxAge != current.MaxAge && want.MaxAge > 0
}

// refusedCommands returns the operators' commands for which the user lacks publish permissions.
func (f Facts) refusedCommands() []string {
	var commands []string
	dead := f.apiPrefix + ".STREAM.MSG.DELETE." + f.names.DeadStream()
	for _, c := range []struct {
		commands string
		subjects []string
	}{
		{"where, pending, retrying, ahead and journal", []string{
			f.apiPrefix + ".CONSUMER.CREATE." + f.names.DeadStream() + ".x",
			f.apiPrefix + ".CONSUMER.MSG.NEXT." + f.names.DeadStream() + ".x",
		}},
		{"timers and schedules", []string{f.names.Timer("x", "x")}},
		{"dead rm", []string{dead}},
		{"dead resend", []string{dead, f.names.Retry(inspect.ShortestRetry(f.want), "x")}},
		{"pause and resume", []string{f.names.PausesRecord()}},
	} {
		if slices.ContainsFunc(c.subjects, func(s string) bool { return !f.user.Permissions.Publish.allows(s) }) {
			commands = append(commands, c.commands)
		}
	}
	return commands
}

// refusedCalls returns the permission that the user lacks for calls between instances.
func (f Facts) refusedCalls() []string {
	calls := f.names.OwnersCalls() + "*"
	if f.user.Permissions.Subscribe.allows(calls) {
		return nil
	}
	return []string{"Subscription to " + calls}
}

// refusedAnswers returns the permissions that the user lacks for answers to operators, and to requests about timers and
// schedules. A broker works without them.
func (f Facts) refusedAnswers() []string {
	var refusals []string
	if !f.user.Permissions.Publish.allows(f.names.StatusAnswers() + "x") {
		refusals = append(refusals, "Publish to "+f.names.StatusFilter())
	}
	calls := []string{f.names.StatusCall()}
	if _, ok := streams.SpecOfKind(f.want, streams.Timers); ok {
		calls = append(calls, f.names.TimerCall("get")+"x.x", f.names.TimersCall(), f.names.CancelAllCall(),
			f.names.ShiftCall())
	}
	calls = append(calls, f.Config.Schedules.Subjects()...)
	for _, subject := range calls {
		if !f.user.Permissions.Subscribe.allows(subject) {
			refusals = append(refusals, "Subscription to "+subject)
		}
	}
	return refusals
}

// patterns returns the subjects, with one pattern for subjects that differ only in their last token. A request that was
// refused twice counts once.
func patterns(subjects []string) []string {
	subjects = slices.Compact(slices.Sorted(slices.Values(subjects)))
	count := make(map[string]int)
	parent := func(subject string) string { return subject[:strings.LastIndexByte(subject, '.')+1] }
	for _, s := range subjects {
		count[parent(s)]++
	}
	var patterns []string
	for _, s := range subjects {
		if p := parent(s); p != "" && count[p] > 1 {
			s = p + "*"
		}
		patterns = append(patterns, s)
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}
