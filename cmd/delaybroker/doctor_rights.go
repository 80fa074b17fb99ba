package main

import (
	"slices"
	"strings"

	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/message"
)

// permissions are a user's, as the server knows them. Without rules everything is allowed.
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
	return r == nil || !slices.ContainsFunc(r.Deny, matches) && (len(r.Allow) == 0 || slices.ContainsFunc(r.Allow, matches))
}

// A grant is a pattern to allow, and the subjects below it that the broker publishes on.
type grant struct {
	link     string
	pattern  string
	subjects []string
}

// grants are what some of the broker's links need to publish, targets apart. test/permissions has them as files.
func (f facts) grants(links ...string) []grant {
	names, err := message.NewNames(f.prefix)
	if err != nil {
		return nil
	}
	var lanes, all, hops, dead, meet, owners []string
	for _, s := range f.want {
		all = append(all, s.Stream)
		switch s.Kind {
		case layout.Owners:
			meet = append(meet, s.Stream)
			owners = append(owners, names.OwnersTable(), names.OwnersBeat()+"x", names.OwnersCall())
			continue
		case layout.Level:
			hops = append(hops, names.Hop(s.Name, "x"))
		case layout.Retry:
			hops = append(hops, names.Retry(s.Name, "x"))
		case layout.Dead:
			dead = append(dead, names.Dead(message.Undelivered, "x"), names.Dead(message.BadTarget, ""))
			continue
		}
		lanes = append(lanes, s.Stream)
	}
	api := func(link, verb, rest string, streams []string) grant {
		g := grant{link: link, pattern: f.apiPrefix + "." + verb + ".*" + rest}
		for _, s := range streams {
			g.subjects = append(g.subjects, f.apiPrefix+"."+verb+"."+s+strings.Replace(rest, "*", lane.ConsumerPrefix+"x", 1))
		}
		return g
	}
	alone := func(link, verb string) grant {
		return grant{link, f.apiPrefix + "." + verb, []string{f.apiPrefix + "." + verb}}
	}
	needed := []grant{
		alone("control", "STREAM.LIST"), api("control", "STREAM.INFO", "", lanes), api("control", "STREAM.PURGE", "", slices.Concat(lanes, meet)),
		api("control", "STREAM.MSG.GET", "", slices.Concat(lanes, meet)), api("control", "STREAM.MSG.DELETE", "", lanes),
		api("read", "STREAM.INFO", "", lanes), api("read", "STREAM.MSG.GET", "", lanes),
		api("read", "CONSUMER.CREATE", ".*", lanes), api("read", "CONSUMER.DELETE", ".*", lanes), api("read", "CONSUMER.MSG.NEXT", ".*", lanes),
		{"write", names.SysFilter(), hops}, {"write", names.DeadFilter(), dead},
	}
	for _, subject := range owners {
		needed = append(needed, grant{"control", subject, []string{subject}})
	}
	if f.cfg.broker.Provision {
		needed = append(needed, api("control", "STREAM.CREATE", "", all), api("control", "STREAM.UPDATE", "", all))
	}
	return slices.DeleteFunc(needed, func(g grant) bool { return !slices.Contains(links, g.link) })
}

func checkRights(f facts) []finding {
	const name = "rights"
	names, err := message.NewNames(f.prefix)
	if f.connectErr != nil || err != nil {
		return nil
	}
	links := []string{"control", "read", "write", "deliver"} // of the user that asks
	for _, l := range f.apart {
		links = slices.DeleteFunc(links, func(link string) bool { return link == l.link })
	}
	grants := f.grants(links...)
	var refused, unasked, mute []string
	for _, r := range f.refused {
		subject, isPublish := strings.CutPrefix(r, "Publish to ")
		if strings.HasPrefix(subject, f.inbox+".") { // of the trial
			subject = f.inbox + ".>"
		}
		ofBroker := func(g grant) bool { return slices.Contains(g.subjects, subject) }
		asks, answers := names.StatusCall(), names.StatusAnswers() // of the instances
		if strings.HasPrefix(r, "Subscription to "+answers) {
			subject, isPublish = names.StatusFilter(), true
		}
		if isPublish && (subject == asks || !slices.ContainsFunc(grants, ofBroker)) {
			unasked = append(unasked, subject)
		} else {
			refused = append(refused, r)
		}
	}
	if f.user != nil {
		refused = append(refused, lacks(f.user.Permissions, grants, f.inbox)...)
		if slices.Contains(links, "control") {
			refused = append(refused, f.deafness()...)
			mute = f.muteness(names)
		}
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	var findings []finding
	switch {
	case len(refused) > 0:
		findings = verdict(name, critical, "grant the broker's user these subjects", "refused: %s", few(refused))
	case len(unasked) > 0:
		findings = verdict(name, warn, "grant them to the user that runs doctor, to know more", "doctor may not ask: %s; the broker can do without", few(unasked))
	case f.user == nil:
		findings = verdict(name, fine, "", "nothing was refused that doctor asks; the server does not say more")
	default:
		findings = verdict(name, fine, "", "all that the broker needs, targets apart")
	}
	if len(mute) > 0 {
		findings = append(findings, verdict(name, warn, "grant the broker's user these subjects, for levels and doctor to see who reads", "the broker cannot answer operators: %s", few(mute))...)
	}
	for _, l := range f.apart {
		findings = append(findings, f.rightsOf(l)...)
	}
	return findings
}

// rightsOf judges a link with a context of its own. Nothing can be tried as its user, who asks next to nothing.
func (f facts) rightsOf(l linkUser) []finding {
	const name = "rights"
	switch {
	case l.err != nil:
		return nil
	case l.user == nil:
		return verdict(name, fine, "", "to %s: not known; grant its user $SYS.REQ.USER.INFO to see them here", l.link)
	}
	if refused := lacks(l.user.Permissions, f.grants(l.link), l.inbox); len(refused) > 0 {
		return verdict(name, critical, "grant the user of "+l.variable+" these subjects", "to %s, refused: %s", l.link, few(refused))
	}
	return verdict(name, fine, "", "to %s: all that is needed, targets apart", l.link)
}

// deafness is what the user may not hear of other instances.
func (f facts) deafness() []string {
	names, err := message.NewNames(f.prefix)
	if err != nil || f.cfg.broker.MaxOwners == 0 || f.user.Permissions.Subscribe.allow(names.OwnersCall()) {
		return nil
	}
	return []string{"Subscription to " + names.OwnersCall()}
}

// muteness is what an instance lacks to tell operators how it is. It works without.
func (f facts) muteness(names message.Names) []string {
	var all []string
	if !f.user.Permissions.Publish.allow(names.StatusAnswers() + "x") {
		all = append(all, "Publish to "+names.StatusFilter())
	}
	if !f.user.Permissions.Subscribe.allow(names.StatusCall()) {
		all = append(all, "Subscription to "+names.StatusCall())
	}
	return all
}

// lacks names what permissions do not allow: by the pattern where that is wholly refused.
func lacks(p permissions, grants []grant, inbox string) []string {
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
