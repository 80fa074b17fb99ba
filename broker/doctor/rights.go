package doctor

import (
	"maps"
	"slices"
	"strings"

	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

func checkRights(f Facts) []Finding {
	names, err := message.NewNames(f.prefix)
	if f.ConnectErr != nil || err != nil {
		return nil
	}
	links := []string{"control", "read", "write", "deliver"} // the links that use doctor's own user
	for _, l := range f.linkUsers {
		links = slices.DeleteFunc(links, func(link string) bool { return link == l.link })
	}
	grants := f.grants(names, links...)
	if users := usersOf(f.instances.Proven); f.isOtherUser(users) {
		return append(f.rightsOfOther(names, "differs from the running brokers' user ("+text.Few(users)+")"),
			f.rightsOfInstances()...)
	}
	if len(f.instances.Proven) == 0 && f.isOperator(grants) {
		return f.rightsOfOther(names, "may not commit as brokers do, and no broker reports its user")
	}
	refused, unasked := f.sortRefusals(names, grants)
	var silent []string
	if f.user != nil {
		refused = append(refused, f.user.Permissions.missing(grants, f.inbox)...)
		if slices.Contains(links, "control") {
			refused = append(refused, f.refusedCalls(names)...)
			silent = f.refusedAnswers(names)
		}
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	var findings []Finding
	switch {
	case len(refused) > 0:
		findings = finding(Critical, "grant the broker's user these subjects", "refused: %s", text.Few(refused))
	case len(unasked) > 0:
		findings = finding(Skipped, operatorAdvice,
			"doctor may not request %s; the broker works without it", text.Few(patterns(unasked)))
	case f.user == nil:
		findings = finding(Fine, "", "no request of doctor was refused; the server reports no more")
	default:
		findings = finding(Fine, "", "all permissions that the broker needs; targets not checked")
	}
	if len(silent) > 0 && len(refused) == 0 {
		findings = append(findings, finding(Warn,
			"grant the broker's user these subjects, so that levels and doctor show the lanes' owners",
			"the broker cannot answer operators: %s", text.Few(silent))...)
	}
	if len(f.want) > 0 && f.user != nil && len(refused) == 0 && slices.Contains(links, "control") &&
		!f.user.Permissions.Publish.allows(names.PausesRecord()) {
		findings = append(findings, finding(Warn, "grant the broker's user this subject, for pause and resume",
			"the broker cannot store the list of pauses: Publish to %s", names.PausesRecord())...)
	}
	if f.user != nil && len(refused) == 0 && slices.Contains(links, "read") {
		findings = append(findings, f.checkReadAhead(f.user.Permissions, "the broker's user")...)
	}
	for _, l := range f.linkUsers {
		findings = append(findings, f.rightsOf(names, l)...)
	}
	if len(refused) == 0 {
		findings = append(findings, f.rightsOfInstances()...)
	}
	return findings
}

// maxRights is the maximum length of a list of permissions in a finding, in characters.
const maxRights = 600

// operatorAdvice is the advice if doctor lacks the permissions for some requests.
const operatorAdvice = "run doctor as the operator to check these too"

// usersOf returns the users of the instances that answered, without duplicates. It returns nil if an instance does not
// report its user.
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

// isOtherUser reports whether doctor's user certainly differs from the users of the running brokers.
func (f Facts) isOtherUser(users []string) bool {
	return f.name != "" && len(users) > 0 && !slices.Contains(users, f.name)
}

// isOperator reports whether the user may read the streams and may not purge any. A broker's user may purge them.
func (f Facts) isOperator(grants []grant) bool {
	return f.findErr == nil && f.user != nil && !slices.ContainsFunc(grants, func(g grant) bool {
		return strings.HasPrefix(g.pattern, f.apiPrefix+".STREAM.PURGE.") &&
			slices.ContainsFunc(g.subjects, f.user.Permissions.Publish.allows)
	})
}

// rightsOfInstances reports the recent requests of the running brokers that the server refused. It uses only the
// brokers' sealed answers.
func (f Facts) rightsOfInstances() []Finding {
	var all []Finding
	for _, a := range f.instances.Proven {
		refused := make(map[string][]string) // by link
		for _, r := range a.Refused {
			refused[r.Link] = append(refused[r.Link], r.Right)
		}
		for _, link := range slices.Sorted(maps.Keys(refused)) {
			all = append(all, finding(Critical, "grant these subjects to the user of that connection",
				"%s was refused on its connection to %s: %s", text.Printable(a.Instance, maxDetail),
				text.Printable(link, maxDetail), text.Printable(text.Few(patterns(refused[link])), maxRights))...)
		}
	}
	return all
}

// rightsOfOther checks a user that is not the broker's: it checks only the permissions for the operator's commands,
// because such a user should not have the broker's other permissions.
func (f Facts) rightsOfOther(names message.Names, why string) []Finding {
	commands := "may use all commands"
	if f.user == nil {
		commands = "the server does not report its permissions"
	} else if refused := f.refusedCommands(names); len(refused) > 0 {
		commands = "may not use " + strings.Join(refused, ", ")
	}
	findings := finding(Fine, "", "%s %s, and %s",
		text.Printable(f.name, maxDetail), text.Printable(why, maxDetail), commands)
	var unasked []string
	for _, r := range f.refused {
		unasked = append(unasked, strings.TrimPrefix(r, "Publish to "))
	}
	if len(unasked) > 0 {
		findings = append(findings,
			finding(Skipped, operatorAdvice, "doctor may not request %s", text.Few(patterns(unasked)))...)
	}
	return findings
}

// checkReadAhead checks that a user may read timers from the replicas of their stream. A broker works without this
// permission.
func (f Facts) checkReadAhead(p permissions, user string) []Finding {
	var all []Finding
	for _, s := range f.want {
		if subject := f.apiPrefix + ".DIRECT.GET." + s.Stream; s.Kind == streams.Timers && !p.Publish.allows(subject) {
			all = finding(Warn, "grant "+user+" this subject, so that many due timers cost less",
				"timers cannot be read ahead: Publish to %s", subject)
		}
	}
	return all
}

// sortRefusals separates the refusals that affect the broker from those that affect doctor only.
func (f Facts) sortRefusals(names message.Names, grants []grant) (refused, unasked []string) {
	for _, r := range f.refused {
		subject, isPublish := strings.CutPrefix(r, "Publish to ")
		if strings.HasPrefix(subject, f.inbox+".") { // a refusal of the trial
			subject = f.inbox + ".>"
		}
		if strings.HasPrefix(r, "Subscription to "+names.StatusAnswers()) { // a refusal of the request to the instances
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

// rightsOf checks a link with its own user. It uses the permissions that the server reports for that user, because
// doctor cannot try them.
func (f Facts) rightsOf(names message.Names, l linkUser) []Finding {
	switch {
	case l.err != nil:
		return nil
	case l.user == nil:
		return finding(Fine, "", "to %s: unknown; grant its user $SYS.REQ.USER.INFO to show them here", l.link)
	}
	if refused := l.user.Permissions.missing(f.grants(names, l.link), l.inbox); len(refused) > 0 {
		return finding(Critical, "grant the user of "+l.setting+" these subjects",
			"to %s, refused: %s", l.link, text.Few(refused))
	}
	findings := finding(Fine, "", "to %s: all permissions that it needs; targets not checked", l.link)
	if l.link == "read" {
		findings = append(findings, f.checkReadAhead(l.user.Permissions, "the user of "+l.setting)...)
	}
	return findings
}
