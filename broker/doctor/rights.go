package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

func checkRights(f Facts) []Finding {
	if f.ConnectErr != nil || f.names.Prefix() == "" {
		return nil
	}
	links := []string{"control", "read", "write", "deliver"}
	for _, l := range f.linkUsers { // doctor uses another user than these links
		links = slices.DeleteFunc(links, func(link string) bool { return link == l.link })
	}
	grants := f.grants(links...)
	users := usersOf(f.instances.ProvenAnswers)
	switch {
	case f.isOtherUser(users):
		return append(f.checkOtherUser("differs from the running brokers' user ("+text.ShortList(users)+")"),
			f.checkInstances()...)
	case len(users) == 0 && f.isOperator(grants):
		return f.checkOtherUser("may purge no lane, unlike a broker, and no broker reports its user")
	}
	refusals, skipped := f.splitRefusals(grants)
	var unanswerable []string
	if f.user != nil {
		refusals = append(refusals, f.user.Permissions.missingRights(grants, f.inbox)...)
		if slices.Contains(links, "control") {
			refusals = append(refusals, f.refusedCalls()...)
			unanswerable = f.refusedAnswers()
		}
	}
	slices.Sort(refusals)
	refusals = slices.Compact(refusals)
	var findings []Finding
	switch {
	case len(refusals) > 0:
		findings = finding(Critical, "grant the broker's user these subjects", "refused: %s", text.ShortList(refusals))
	case len(skipped) > 0:
		findings = finding(Skipped, operatorAdvice,
			"the server refused requests that only doctor sends: %s", text.ShortList(patterns(skipped)))
	case f.user == nil:
		findings = finding(Skipped, "grant the user $SYS.REQ.USER.INFO to check them",
			"the server does not report the user's permissions; no request of doctor was refused")
	default:
		findings = finding(Fine, "", "the user has all permissions that the broker needs; targets not checked")
	}
	if len(unanswerable) > 0 && len(refusals) == 0 {
		findings = append(findings, finding(Warn,
			"grant the broker's user these subjects, so that operators and clients get answers",
			"the broker lacks permissions to answer requests: %s", text.ShortList(unanswerable))...)
	}
	if len(f.want) > 0 && f.user != nil && len(refusals) == 0 && slices.Contains(links, "control") &&
		!f.user.Permissions.Publish.allows(f.names.PausesRecord()) {
		findings = append(findings, finding(Warn, "grant the broker's user this subject, for pause and resume",
			"the broker lacks the permission to store the list of pauses: Publish to %s", f.names.PausesRecord())...)
	}
	if f.user != nil && len(refusals) == 0 && slices.Contains(links, "read") {
		findings = append(findings, f.checkReadAhead(f.user.Permissions, "the broker's user")...)
	}
	for _, l := range f.linkUsers {
		findings = append(findings, f.checkLinkRights(l)...)
	}
	if len(refusals) == 0 {
		findings = append(findings, f.checkInstances()...)
	}
	return findings
}

// maxRights is the maximum length of a list of permissions in a finding, in characters.
const maxRights = 600

// operatorAdvice is the advice for requests of doctor that the server refused.
const operatorAdvice = "run doctor as the operator, who may send these requests"

// usersOf returns the users of the instances that report them, without duplicates.
func usersOf(answers []stats.InstanceStatus) []string {
	var users []string
	for _, a := range answers {
		users = append(users, a.Users...)
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// isOtherUser reports whether doctor's user is known to differ from the users of the running brokers.
func (f Facts) isOtherUser(users []string) bool {
	return f.name != "" && len(users) > 0 && !slices.Contains(users, f.name)
}

// isOperator reports whether the user may list the streams and purge none. A broker's user may purge its streams.
func (f Facts) isOperator(grants []grant) bool {
	return f.findErr == nil && f.user != nil && !slices.ContainsFunc(grants, func(g grant) bool {
		return strings.HasPrefix(g.pattern, f.apiPrefix+".STREAM.PURGE.") &&
			slices.ContainsFunc(g.subjects, f.user.Permissions.Publish.allows)
	})
}

// checkInstances reports which operations of the running brokers the server has refused recently. It uses only the
// brokers' sealed answers.
func (f Facts) checkInstances() []Finding {
	var findings []Finding
	for _, a := range f.instances.ProvenAnswers {
		refusals := make(map[string][]string) // by link
		for _, r := range a.Refused {
			refusals[r.Link] = append(refusals[r.Link], r.Right)
		}
		for _, link := range slices.Sorted(maps.Keys(refusals)) {
			findings = append(findings, finding(Critical, "grant these subjects to the user of that connection",
				"operations of %s were refused on its %s connection: %s", text.Printable(a.Instance, maxDetail),
				text.Printable(link, maxDetail), text.Printable(text.ShortList(patterns(refusals[link])), maxRights))...)
		}
	}
	return findings
}

// checkOtherUser checks the permissions of an operator's user for the operator's commands. Such a user should not have
// the broker's permissions.
func (f Facts) checkOtherUser(reason string) []Finding {
	commands := "the user may use all commands"
	if f.user == nil {
		commands = "the server does not report the user's permissions"
	} else if refusals := f.refusedCommands(); len(refusals) > 0 {
		commands = "the user may not use " + strings.Join(refusals, ", ")
	}
	findings := finding(Fine, "", "%s %s; %s",
		text.Printable(cmp.Or(f.name, "this user"), maxDetail), text.Printable(reason, maxDetail), commands)
	var skipped []string
	for _, r := range f.refused {
		skipped = append(skipped, strings.TrimPrefix(r, "Publish to "))
	}
	if len(skipped) > 0 {
		findings = append(findings,
			finding(Skipped, operatorAdvice, "the server refused requests of doctor: %s", text.ShortList(patterns(skipped)))...)
	}
	return findings
}

// checkReadAhead looks for a missing permission to read timers from the replicas of their stream. A broker works
// without this permission.
func (f Facts) checkReadAhead(p permissions, user string) []Finding {
	var findings []Finding
	for _, s := range f.want {
		if subject := f.apiPrefix + ".DIRECT.GET." + s.Stream; s.Kind == streams.Timers && !p.Publish.allows(subject) {
			findings = finding(Warn, "grant "+user+" this subject, so that many due timers cost less",
				user+" lacks the permission to read timers from replicas: Publish to %s", subject)
		}
	}
	return findings
}

// splitRefusals separates the refusals that affect the broker from the subjects of requests that only doctor sends.
func (f Facts) splitRefusals(grants []grant) (refusals, skipped []string) {
	for _, r := range f.refused {
		subject, isPublish := strings.CutPrefix(r, "Publish to ")
		if strings.HasPrefix(subject, f.inbox+".") { // a refusal of the trial
			subject = f.inbox + ".>"
		}
		if strings.HasPrefix(r, "Subscription to "+f.names.StatusAnswers()) { // a refusal of the request to the instances
			subject, isPublish = f.names.StatusFilter(), true
		}
		ofBroker := func(g grant) bool { return slices.Contains(g.subjects, subject) }
		if isPublish && (subject == f.names.StatusCall() || !slices.ContainsFunc(grants, ofBroker)) {
			skipped = append(skipped, subject)
		} else {
			refusals = append(refusals, r)
		}
	}
	return refusals, skipped
}

// checkLinkRights checks the permissions of a link's user, as the server reports them. Doctor sends no request as this
// user to test a permission.
func (f Facts) checkLinkRights(l linkUser) []Finding {
	switch {
	case l.err != nil:
		return nil
	case l.user == nil:
		return finding(Skipped, "grant its user $SYS.REQ.USER.INFO to check them",
			"the permissions of the %s connection are unknown", l.link)
	}
	if refusals := l.user.Permissions.missingRights(f.grants(l.link), l.inbox); len(refusals) > 0 {
		return finding(Critical, "grant the user of "+l.setting+" these subjects",
			"the user of the %s connection lacks: %s", l.link, text.ShortList(refusals))
	}
	findings := finding(Fine, "",
		"the user of the %s connection has all permissions that it needs; targets not checked", l.link)
	if l.link == "read" {
		findings = append(findings, f.checkReadAhead(l.user.Permissions, "the user of "+l.setting)...)
	}
	return findings
}
