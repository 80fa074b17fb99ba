package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/layout"
)

func checkStreams(f facts) []finding {
	const name = "streams"
	switch {
	case errors.Is(f.findErr, nats.ErrPermissionViolation):
		return nil
	case f.findErr != nil:
		return verdict(name, critical, "", "cannot be listed: %v", f.findErr)
	case f.all == nil:
		return nil
	}
	var all []finding
	c := layout.Compare(f.want, f.all)
	if len(c.Missing) > 0 {
		all = append(all, verdict(name, critical, "run delaybroker provision, or start the broker once with DELAY_PROVISION=create",
			"%d of %d are missing: %s", len(c.Missing), len(f.want), few(c.Missing))...)
	}
	if len(c.Foreign) > 0 {
		all = append(all, verdict(name, critical, "rename them, or choose another DELAY_PREFIX", "not ours, with our names: %s", few(c.Foreign))...)
	}
	for _, s := range layout.FindStranded(f.prefix, f.all) {
		all = append(all, verdict(name, warn, "run a broker with DELAY_PREFIX="+s.Prefix+" until they are empty, or delete them", "%s", s)...)
	}
	for _, l := range f.view.Lanes {
		switch l.State {
		case stateBroken:
			all = append(all, verdict(name, critical, "nats stream edit "+l.Stream+", and restart the broker", "nobody serves %s: %s", l.Stream, l.Error)...)
		case stateNewer:
			all = append(all, verdict(name, warn, "upgrade this broker", "%s is of a newer broker; this one leaves it alone", l.Stream)...)
		case stateSilent:
			if slices.ContainsFunc(f.refused, func(r string) bool { return strings.HasSuffix(r, "."+l.Stream) }) {
				continue // it was not even asked
			}
			all = append(all, verdict(name, critical, "look at the servers: the stream has no leader", "%s does not answer: %s", l.Stream, l.Error)...)
		}
	}
	if all == nil {
		return verdict(name, fine, "", "all %d are there", len(f.want))
	}
	return all
}

func checkDrift(f facts) []finding {
	const name = "drift"
	if f.all == nil {
		return nil
	}
	drift := layout.Compare(f.want, f.all).Drift
	for _, s := range f.found { // a retiring level must keep the promises too
		if !slices.ContainsFunc(f.want, func(w layout.Spec) bool { return w.Stream == s.Stream }) && s.Format <= layout.Format && s.Broken == nil {
			drift = append(drift, s.Drift(f.all[s.Stream].Config)...)
		}
	}
	var all []finding
	for _, d := range drift {
		state := warn
		if d.Fatal {
			state = critical
		}
		all = append(all, verdict(name, state, "nats stream edit "+d.Stream+"; for subjects delaybroker provision", "%s", d)...)
	}
	if all == nil {
		return verdict(name, fine, "", "none")
	}
	return all
}

// checkSeal looks at what proves that a message between lanes is a broker's.
func checkSeal(f facts) []finding {
	const name = "seal"
	if f.all == nil || len(f.found) == 0 {
		return nil
	}
	secrets, sealed := layout.Secrets(f.found)
	with := "DELAY_SECRET"
	if len(f.cfg.broker.Secrets) == 0 {
		with = "the secret in the streams' metadata"
	}
	const provision = "run delaybroker provision, or start the broker once with DELAY_PROVISION=create"
	switch none := len(secrets)+len(f.cfg.broker.Secrets) == 0; {
	case none && sealed.IsZero():
		return verdict(name, warn, provision, "messages between lanes are not sealed: whoever can have one put there is believed")
	case none:
		return verdict(name, critical, "set DELAY_SECRET to what the other brokers have", "messages are sealed since %s, and there is no secret", moment(sealed))
	case sealed.IsZero():
		return verdict(name, warn, provision, "messages are sealed with %s, and believed without: no stream says from when they are not", with)
	}
	return verdict(name, fine, "", "messages are sealed with %s, and not believed without since %s", with, moment(sealed))
}

func checkStorage(f facts) []finding {
	const name = "storage"
	var all []finding
	for _, what := range []string{"disk", "store"} { // of the embedded server, which knows better than a trial
		if said := f.ready.failing(what); said != "" {
			all = append(all, verdict(name, critical, "free space on the disk of DELAY_EMBEDDED_DIR: nothing new is accepted or moved", "the broker at %s says: %s", f.ready.url, said)...)
		}
	}
	if f.account == nil && f.all == nil {
		return all
	}
	for _, l := range f.view.Lanes {
		if l.info != nil && isFull(l.info) {
			all = append(all, verdict(name, critical, "raise its max_bytes or max_msgs: nats stream edit "+l.Stream,
				"%s is full: %d messages, %d bytes", l.Stream, l.Pending, l.Bytes)...)
		}
	}
	if f.trial.refusal != "" {
		do := "free space, or raise max_file_store of the servers: nothing new is accepted or moved"
		if f.serverName == embeddedName { // it has no setting
			do = embeddedFull
		}
		all = append(all, verdict(name, critical, do,
			"the servers refuse to store: %s", f.trial.refusal)...)
	}
	for tier, used := range f.stores() {
		state := fine
		switch part := used.part(); {
		case part >= fullAt:
			state = critical
		case part >= storeWarn:
			state = warn
		}
		if state > fine {
			all = append(all, verdict(name, state, "raise the account's limit, or delete what is not needed",
				"the account's %sstore holds %d of %d bytes", tier, used.bytes, used.limit)...)
		}
	}
	if all != nil {
		return all
	}
	if f.trial.known {
		return verdict(name, fine, "", "a trial was accepted")
	}
	return verdict(name, fine, "", "no limit in sight is near; the servers' own limit was not tried")
}

// usage is of one tier of the account.
type usage struct {
	bytes uint64
	limit int64 // zero or less is none
}

func (u usage) part() float64 {
	if u.limit <= 0 {
		return 0
	}
	return float64(u.bytes) / float64(u.limit)
}

// stores are the account's, by tier: one without a name, or R1, R3 and so on.
func (f facts) stores() map[string]usage {
	if f.account == nil {
		return nil
	}
	all := map[string]usage{"": {f.account.Store, f.account.Limits.MaxStore}}
	for name, t := range f.account.Tiers {
		all[name+" "] = usage{t.Store, t.Limits.MaxStore}
	}
	return all
}

func checkReaders(f facts) []finding {
	const name = "lanes"
	if f.all == nil || len(f.found) == 0 {
		return nil
	}
	var all []finding
	var unread, stopped, unknown, late []string
	lanes := 0
	for _, l := range f.view.Lanes {
		if l.Owner != "" {
			lanes++
		}
		switch l.Owner {
		case ownerNobody:
			if l.Instance != "" { // by the table, which keeps those that died until another takes over
				unread = append(unread, fmt.Sprintf("%s (last %s, which does not answer)", l.Stream, l.Instance))
			} else {
				unread = append(unread, l.Stream)
			}
		case ownerStopped:
			stopped = append(stopped, fmt.Sprintf("%s of %s", l.Stream, l.Instance))
		case ownerUnknown:
			unknown = append(unknown, l.Stream)
		}
		if l.Overdue >= lateWarn.Seconds() {
			late = append(late, fmt.Sprintf("%s by %s", l.Stream, dashed(l.Overdue)))
		}
	}
	switch {
	case len(unread) > 0 && len(unread) == lanes:
		all = append(all, verdict(name, critical, "start a broker: delaybroker serve", "nobody reads any of the %d lanes", lanes)...)
	case len(unread) > 0:
		all = append(all, verdict(name, critical, "restart a broker: streams made after its start are not read", "nobody reads %s", few(unread))...)
	}
	if len(stopped) > 0 {
		all = append(all, verdict(name, critical, "look at the broker's log and at the streams' leaders; a restart does not help",
			"their instance cannot read them at the moment: %s", few(stopped))...)
	}
	if len(late) > 0 {
		all = append(all, verdict(name, warn, "look at the broker's log: a target, a stream or the broker is behind", "late: %s", few(late))...)
	}
	if all != nil {
		return all
	}
	detail := fmt.Sprintf("%d lanes, %d messages pending", lanes, f.view.Totals.Pending)
	if len(unknown) > 0 {
		detail += fmt.Sprintf("; whether somebody reads %s is not known, as this user may not ask: %v", few(unknown), f.instances.refused)
	}
	return verdict(name, fine, "", "%s", detail)
}

func checkDurability(f facts) []finding {
	k := keeping{clustered: f.clustered} // the version has a check of its own
	if f.serverName == embeddedName {
		k.embed = f.cfg.embed
	}
	for _, l := range f.view.Lanes {
		if l.info != nil {
			k.streams = append(k.streams, l.info.Config)
		}
	}
	if len(k.streams) == 0 {
		return nil
	}
	return []finding{k.finding()}
}

func checkDeadLetters(f facts) []finding {
	const name = "dead letters"
	if f.all == nil || len(f.found) == 0 {
		return nil
	}
	for _, l := range f.view.Lanes {
		if l.Kind == layout.Dead && l.Pending > 0 {
			return verdict(name, warn, "see what and why: delaybroker dead ls --by code,target,reason", "%d in %s", l.Pending, l.Stream)
		}
	}
	return verdict(name, fine, "", "none")
}
