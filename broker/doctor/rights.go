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
	links := []string{"control", "read", "write", "deliver"} // of doctor's own user
	for _, l := range f.apart {
		links = slices.DeleteFunc(links, func(link string) bool { return link == l.link })
	}
	grants := f.grants(names, links...)
	if users := usersOf(f.instances.Proven); f.isAnother(users) {
		return append(f.rightsOfAnother(names, "differs from the running brokers' user ("+text.Few(users)+")"),
			f.rightsOfInstances()...)
	}
	if len(f.instances.Proven) == 0 && f.isPerson(grants) {
		return f.rightsOfAnother(names, "may not commit as brokers do, and no broker reports its user")
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
		findings = verdict(Skipped, askMore,
			"doctor may not request %s; the broker works without it", text.Few(patterns(unasked)))
	case f.user == nil:
		findings = verdict(Fine, "", "no request of doctor was refused; the server reports no more")
	default:
		findings = verdict(Fine, "", "all permissions that the broker needs; targets not checked")
	}
	if len(silent) > 0 && len(refused) == 0 {
		findings = append(findings, verdict(Warn,
			"grant the broker's user these subjects, so that levels and doctor show the lanes' owners",
			"the broker cannot answer operators: %s", text.Few(silent))...)
	}
	if len(f.want) > 0 && f.user != nil && len(refused) == 0 && slices.Contains(links, "control") &&
		!f.user.Permissions.Publish.allow(names.PausesRecord()) {
		findings = append(findings, verdict(Warn, "grant the broker's user this subject, for pause and resume",
			"the broker cannot store the list of pauses: Publish to %s", names.PausesRecord())...)
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

// maxRights is the maximum length of a list of permissions in a finding, in characters.
const maxRights = 600

// askMore is the advice if doctor lacks the permissions for some requests.
const askMore = "run doctor as the operator to check these too"

// usersOf returns the users of all instances that answered, each once. It returns nil if an instance does not report
// its user.
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

// isAnother reports whether doctor's user certainly differs from that of a running broker.
func (f Facts) isAnother(users []string) bool {
	return f.name != "" && len(users) > 0 && !slices.Contains(users, f.name)
}

// isPerson reports whether the user may read the streams but not purge any, which brokers may.
func (f Facts) isPerson(grants []grant) bool {
	return f.findErr == nil && f.user != nil && !slices.ContainsFunc(grants, func(g grant) bool {
		return strings.HasPrefix(g.pattern, f.apiPrefix+".STREAM.PURGE.") &&
			slices.ContainsFunc(g.subjects, f.user.Permissions.Publish.allow)
	})
}

// rightsOfInstances reports the recent refusals by the server of the running brokers' requests. Only a sealed answer
// counts.
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

// rightsOfAnother judges a user that is not the broker's by the permissions of the operator's commands. Such a user
// should not have the broker's other permissions.
func (f Facts) rightsOfAnother(names message.Names, why string) []Finding {
	may := "may use all commands"
	if f.user == nil {
		may = "the server does not report its permissions"
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
		findings = append(findings, verdict(Skipped, askMore, "doctor may not request %s", text.Few(patterns(unasked)))...)
	}
	return findings
}

// readAhead reports whether a user may read timers from the replicas of their stream. A broker works without that.
func (f Facts) readAhead(p permissions, user string) []Finding {
	var all []Finding
	for _, s := range f.want {
		if subject := f.apiPrefix + ".DIRECT.GET." + s.Stream; s.Kind == streams.Timers && !p.Publish.allow(subject) {
			all = verdict(Warn, "grant "+user+" this subject, so that many due timers cost less",
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

// rightsOf judges a link with its own user by the server's report of the permissions: doctor cannot try them.
func (f Facts) rightsOf(names message.Names, l linkUser) []Finding {
	switch {
	case l.err != nil:
		return nil
	case l.user == nil:
		return verdict(Fine, "", "to %s: unknown; grant its user $SYS.REQ.USER.INFO to show them here", l.link)
	}
	if refused := l.user.Permissions.lack(f.grants(names, l.link), l.inbox); len(refused) > 0 {
		return verdict(Critical, "grant the user of "+l.from+" these subjects",
			"to %s, refused: %s", l.link, text.Few(refused))
	}
	findings := verdict(Fine, "", "to %s: all permissions that it needs; targets not checked", l.link)
	if l.link == "read" {
		findings = append(findings, f.readAhead(l.user.Permissions, "the user of "+l.from)...)
	}
	return findings
}
