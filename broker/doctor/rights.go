package doctor

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// permissions are the server's rules for a user. Without rules everything is allowed.
type permissions struct {
	Publish   *rules `json:"publish"`
	Subscribe *rules `json:"subscribe"`
}

type rules struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

func (r *rules) allow(subject string) bool {
	matches := func(pattern string) bool { return message.Match(pattern, subject) }
	return r == nil || !slices.ContainsFunc(r.Deny, matches) &&
		(len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, matches))
}

// A grant is a pattern to allow, and the subjects below it that the broker publishes on.
type grant struct {
	link     string
	pattern  string
	subjects []string
}

// A grantList collects grants of the JetStream API.
type grantList struct {
	api string // "$JS.API"
	all []grant
}

// one adds a request that names no stream.
func (g *grantList) one(link, verb string) {
	g.all = append(g.all, grant{link, g.api + "." + verb, []string{g.api + "." + verb}})
}

// of adds a request about each of some streams. The rest follows the name of the stream; * in it is a consumer.
func (g *grantList) of(link, verb, rest string, streams []string) {
	added := grant{link: link, pattern: g.api + "." + verb + ".*" + rest}
	for _, s := range streams {
		suffix := strings.Replace(rest, "*", lane.ConsumerPrefix+"x", 1)
		added.subjects = append(added.subjects, g.api+"."+verb+"."+s+suffix)
	}
	g.all = append(g.all, added)
}

// grants returns the publish rights that some of the broker's links need, targets apart. test/permissions has them as
// files.
func (f Facts) grants(names message.Names, links ...string) []grant {
	var lanes, purged, all, hops, dead, meet, owners, timers []string
	for _, s := range f.want {
		all = append(all, s.Stream)
		switch s.Kind {
		case streams.Owners:
			meet = append(meet, s.Stream)
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
			hops = append(hops, names.Paused("x", "x"))
		case streams.Timers:
			timers = append(timers, names.Timer("x", "x"))
			hops = append(hops, names.Armed())
			lanes = append(lanes, s.Stream)
			continue
		case streams.Dead:
			dead = append(dead, names.Dead(message.Undelivered, "x"), names.Dead(message.BadTarget, ""))
			continue
		}
		lanes, purged = append(lanes, s.Stream), append(purged, s.Stream)
	}
	needed := grantList{api: f.apiPrefix}
	needed.one("control", "STREAM.LIST")
	needed.of("control", "STREAM.INFO", "", lanes)
	needed.of("control", "STREAM.PURGE", "", slices.Concat(purged, meet))
	needed.of("control", "STREAM.MSG.GET", "", slices.Concat(lanes, meet))
	needed.of("control", "STREAM.MSG.DELETE", "", lanes)
	needed.of("read", "STREAM.INFO", "", lanes)
	needed.of("read", "STREAM.MSG.GET", "", lanes)
	needed.of("read", "CONSUMER.CREATE", ".*", lanes)
	needed.of("read", "CONSUMER.DELETE", ".*", lanes)
	needed.of("read", "CONSUMER.MSG.NEXT", ".*", lanes)
	needed.all = append(needed.all, grant{"write", names.SysFilter(), hops}, grant{"write", names.DeadFilter(), dead})
	if len(timers) > 0 {
		needed.all = append(needed.all, grant{"write", names.TimerFilter(), timers})
	}
	for _, subject := range owners {
		needed.all = append(needed.all, grant{"control", subject, []string{subject}})
	}
	if f.Config.Provision && f.All != nil { // a broker that finds its streams as configured requests no change
		missing := streams.Compare(f.want, f.All).Missing
		needed.of("control", "STREAM.CREATE", "", missing)
		needed.of("control", "STREAM.UPDATE", "", slices.DeleteFunc(all, func(s string) bool {
			return slices.Contains(missing, s) || !f.differs(s)
		}))
	}
	return slices.DeleteFunc(needed.all, func(g grant) bool { return !slices.Contains(links, g.link) })
}

// differs reports whether the configuration would change a stream's subjects, or how long it keeps records.
func (f Facts) differs(stream string) bool {
	want, wanted := inspect.SpecOf(f.want, stream)
	if !wanted {
		return false
	}
	has := f.All[stream].Config
	lacks := slices.ContainsFunc(want.Subjects, func(s string) bool { return !slices.Contains(has.Subjects, s) })
	return lacks || want.MaxAge != has.MaxAge && want.MaxAge > 0
}

func checkRights(f Facts) []Finding {
	names, err := message.NewNames(f.prefix)
	if f.ConnectErr != nil || err != nil {
		return nil
	}
	links := []string{"control", "read", "write", "deliver"} // of doctor's own user
	for _, l := range f.apart {
		links = slices.DeleteFunc(links, func(link string) bool { return link == l.link })
	}
	grants := f.grants(names, links...)
	if users := usersOf(f.instances.Proven); f.isAnother(users) {
		return append(f.rightsOfAnother(names, "is another user than the running brokers' ("+text.Few(users)+")"),
			f.rightsOfInstances()...)
	}
	if len(f.instances.Proven) == 0 && f.isPerson(grants) {
		return f.rightsOfAnother(names, "has none of the rights by which brokers commit, and no broker says who it is")
	}
	refused, unasked := f.sortRefusals(names, grants)
	var silent []string
	if f.user != nil {
		refused = append(refused, f.user.Permissions.lack(grants, f.inbox)...)
		if slices.Contains(links, "control") {
			refused = append(refused, f.unheard(names)...)
			silent = f.unanswered(names)
		}
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	var findings []Finding
	switch {
	case len(refused) > 0:
		findings = verdict(Critical, "grant the broker's user these subjects", "refused: %s", text.Few(refused))
	case len(unasked) > 0:
		findings = verdict(Skipped, askMore, "doctor may not ask: %s; the broker can do without", text.Few(patterns(unasked)))
	case f.user == nil:
		findings = verdict(Fine, "", "nothing was refused that doctor asks; the server does not say more")
	default:
		findings = verdict(Fine, "", "all that the broker needs, targets apart")
	}
	if len(silent) > 0 && len(refused) == 0 {
		findings = append(findings, verdict(Warn,
			"grant the broker's user these subjects, for levels and doctor to see who reads",
			"the broker cannot answer operators: %s", text.Few(silent))...)
	}
	if len(f.want) > 0 && f.user != nil && len(refused) == 0 && slices.Contains(links, "control") &&
		!f.user.Permissions.Publish.allow(names.PausesRecord()) {
		findings = append(findings, verdict(Warn, "grant the broker's user this subject, for pause and resume",
			"the broker cannot keep the list of what is paused: Publish to %s", names.PausesRecord())...)
	}
	if f.user != nil && len(refused) == 0 && slices.Contains(links, "read") {
		findings = append(findings, f.readAhead(f.user.Permissions, "the broker's user")...)
	}
	for _, l := range f.apart {
		findings = append(findings, f.rightsOf(names, l)...)
	}
	if len(refused) == 0 {
		findings = append(findings, f.rightsOfInstances()...)
	}
	return findings
}

// maxRights is the maximum length of a list of rights in a finding, in characters.
const maxRights = 600

// askMore is the advice if doctor lacks the rights for some requests.
const askMore = "to have these judged too, run doctor as the operator"

// usersOf returns the users of all instances that answered, each once. It returns nil if one instance does not know its
// own.
func usersOf(answers []stats.Answer) []string {
	var all []string
	for _, a := range answers {
		if len(a.Users) == 0 {
			return nil
		}
		all = append(all, a.Users...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isAnother reports whether doctor's user is certainly not the user of a running broker.
func (f Facts) isAnother(users []string) bool {
	return f.name != "" && len(users) > 0 && !slices.Contains(users, f.name)
}

// isPerson reports whether the user may read the streams, but purge none of them as brokers do.
func (f Facts) isPerson(grants []grant) bool {
	return f.findErr == nil && f.user != nil && !slices.ContainsFunc(grants, func(g grant) bool {
		return strings.HasPrefix(g.pattern, f.apiPrefix+".STREAM.PURGE.") &&
			slices.ContainsFunc(g.subjects, f.user.Permissions.Publish.allow)
	})
}

// rightsOfInstances reports the recent denials of the server to the running brokers. Only an answer that a broker has
// sealed counts.
func (f Facts) rightsOfInstances() []Finding {
	var all []Finding
	for _, a := range f.instances.Proven {
		of := make(map[string][]string) // by link
		for _, r := range a.Refused {
			of[r.Link] = append(of[r.Link], r.Right)
		}
		for _, link := range slices.Sorted(maps.Keys(of)) {
			all = append(all, verdict(Critical, "grant these subjects to the user of that connection",
				"%s was refused on its connection to %s: %s", text.Printable(a.Instance, maxDetail),
				text.Printable(link, maxDetail), text.Printable(text.Few(patterns(of[link])), maxRights))...)
		}
	}
	return all
}

// rightsOfAnother judges a user that is not the broker's by the needs of the operator's commands. Such a user should
// not have the broker's other rights.
func (f Facts) rightsOfAnother(names message.Names, why string) []Finding {
	may := "may use all commands"
	if f.user == nil {
		may = "the server does not say what it may do"
	} else if refused := f.refusedCommands(names); len(refused) > 0 {
		may = "may not use " + strings.Join(refused, ", ")
	}
	findings := verdict(Fine, "", "%s %s, and %s",
		text.Printable(f.name, maxDetail), text.Printable(why, maxDetail), may)
	var unasked []string
	for _, r := range f.refused {
		unasked = append(unasked, strings.TrimPrefix(r, "Publish to "))
	}
	if len(unasked) > 0 {
		findings = append(findings, verdict(Skipped, askMore, "doctor may not ask: %s", text.Few(patterns(unasked)))...)
	}
	return findings
}

// refusedCommands returns the operators' commands that the user lacks the publish rights for.
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
		{"dead resend", []string{dead, names.Retry(f.shortestRetry(), "x")}},
		{"pause and resume", []string{names.PausesRecord()}},
	} {
		if slices.ContainsFunc(c.needs, func(s string) bool { return !f.user.Permissions.Publish.allow(s) }) {
			all = append(all, c.commands)
		}
	}
	return all
}

// shortestRetry returns the level of the first retry lane, to which dead letters are resent.
func (f Facts) shortestRetry() (level string) {
	shortest := time.Duration(math.MaxInt64)
	for _, s := range f.want {
		if s.Kind == streams.Retry && s.Delay < shortest {
			level, shortest = s.Name, s.Delay
		}
	}
	return level
}

// patterns shortens a list of subjects: if several differ in their last token only, * replaces it.
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

// readAhead judges whether a user may read timers from the replicas of their stream. A broker works without that.
func (f Facts) readAhead(p permissions, user string) []Finding {
	var all []Finding
	for _, s := range f.want {
		if subject := f.apiPrefix + ".DIRECT.GET." + s.Stream; s.Kind == streams.Timers && !p.Publish.allow(subject) {
			all = verdict(Warn, "grant "+user+" this subject, for timers to cost less when many are due",
				"timers cannot be read ahead: Publish to %s", subject)
		}
	}
	return all
}

// sortRefusals separates the refusals that affect the broker from those that affect doctor only.
func (f Facts) sortRefusals(names message.Names, grants []grant) (refused, unasked []string) {
	for _, r := range f.refused {
		subject, isPublish := strings.CutPrefix(r, "Publish to ")
		if strings.HasPrefix(subject, f.inbox+".") { // of the trial
			subject = f.inbox + ".>"
		}
		if strings.HasPrefix(r, "Subscription to "+names.StatusAnswers()) { // of the instances
			subject, isPublish = names.StatusFilter(), true
		}
		ofBroker := func(g grant) bool { return slices.Contains(g.subjects, subject) }
		if isPublish && (subject == names.StatusCall() || !slices.ContainsFunc(grants, ofBroker)) {
			unasked = append(unasked, subject)
		} else {
			refused = append(refused, r)
		}
	}
	return refused, unasked
}

// rightsOf judges a link with its own user by the server's report of that user's rights: doctor cannot try them.
func (f Facts) rightsOf(names message.Names, l linkUser) []Finding {
	switch {
	case l.err != nil:
		return nil
	case l.user == nil:
		return verdict(Fine, "", "to %s: not known; grant its user $SYS.REQ.USER.INFO to see them here", l.link)
	}
	if refused := l.user.Permissions.lack(f.grants(names, l.link), l.inbox); len(refused) > 0 {
		return verdict(Critical, "grant the user of "+l.from+" these subjects",
			"to %s, refused: %s", l.link, text.Few(refused))
	}
	findings := verdict(Fine, "", "to %s: all that is needed, targets apart", l.link)
	if l.link == "read" {
		findings = append(findings, f.readAhead(l.user.Permissions, "the user of "+l.from)...)
	}
	return findings
}

// unheard returns the subjects between instances that the user may not subscribe to.
func (f Facts) unheard(names message.Names) []string {
	if f.Config.MaxOwners == 0 || f.user.Permissions.Subscribe.allow(names.OwnersCall()) {
		return nil
	}
	return []string{"Subscription to " + names.OwnersCall()}
}

// unanswered returns the rights that the user lacks to answer operators' requests. A broker works without them.
func (f Facts) unanswered(names message.Names) []string {
	var all []string
	if !f.user.Permissions.Publish.allow(names.StatusAnswers() + "x") {
		all = append(all, "Publish to "+names.StatusFilter())
	}
	calls := []string{names.StatusCall()}
	if slices.ContainsFunc(f.want, func(s streams.Spec) bool { return s.Kind == streams.Timers }) {
		calls = append(calls, names.TimerCall("get")+"x.x", names.TimersCall(), names.CancelAllCall(), names.ShiftCall())
	}
	calls = append(calls, f.Config.Schedules.Subjects()...)
	for _, subject := range calls {
		if !f.user.Permissions.Subscribe.allow(subject) {
			all = append(all, "Subscription to "+subject)
		}
	}
	return all
}

// lack returns the subjects that are not allowed, or the pattern if all of its subjects are refused.
func (p permissions) lack(grants []grant, inbox string) []string {
	var all []string
	for _, g := range grants {
		refused := slices.DeleteFunc(slices.Clone(g.subjects), p.Publish.allow)
		if len(refused) == len(g.subjects) && len(refused) > 1 {
			refused = []string{g.pattern}
		}
		for _, subject := range refused {
			all = append(all, "Publish to "+subject)
		}
	}
	if answers := inbox + ".x.y"; !p.Subscribe.allow(answers) {
		all = append(all, "Subscription to "+answers)
	}
	return all
}
