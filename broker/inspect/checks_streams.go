package inspect

import (
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/layout"
)

// toProvision is what to do about streams that are not there, or lack a mark.
const toProvision = "run delaybroker provision, or start a broker without DELAY_PROVISION=verify, " +
	"as a user who may do it"

func checkStreams(f Facts) []Finding {
	const name = "streams"
	switch {
	case errors.Is(f.findErr, nats.ErrPermissionViolation):
		return nil
	case f.findErr != nil:
		return verdict(name, Critical, "", "cannot be listed: %v", f.findErr)
	case f.all == nil:
		return nil
	}
	var all []Finding
	c := layout.Compare(f.want, f.all)
	if len(c.Missing) > 0 {
		all = append(all, verdict(name, Critical, toProvision,
			"%d of %d are missing: %s", len(c.Missing), len(f.want), few(c.Missing))...)
	}
	if len(c.Foreign) > 0 {
		all = append(all, verdict(name, Critical, "rename them, or choose another DELAY_PREFIX",
			"not ours, with our names: %s", few(c.Foreign))...)
	}
	for _, s := range layout.FindStranded(f.prefix, f.all) {
		all = append(all, verdict(name, Warn,
			"run a broker with DELAY_PREFIX="+s.Prefix+" until they are empty, or delete them", "%s", s)...)
	}
	for _, l := range f.lanes.Lanes {
		all = append(all, f.checkState(l)...)
	}
	if all == nil {
		return verdict(name, Fine, "", "all %d are there", len(f.want))
	}
	return all
}

// checkState looks at what keeps a single stream from being served.
func (f Facts) checkState(l Lane) []Finding {
	const name = "streams"
	switch l.State {
	case Broken:
		return verdict(name, Critical, "nats stream edit "+l.Stream+", and restart the broker",
			"nobody serves %s: %s", l.Stream, l.Error)
	case Newer:
		return verdict(name, Warn, "upgrade this broker", "%s is of a newer broker; this one leaves it alone", l.Stream)
	case Silent:
		if slices.ContainsFunc(f.refused, func(r string) bool { return strings.HasSuffix(r, "."+l.Stream) }) {
			return nil // it was not even asked
		}
		return verdict(name, Critical, "look at the servers: the stream has no leader",
			"%s does not answer: %s", l.Stream, l.Error)
	}
	return nil
}

func checkDrift(f Facts) []Finding {
	const name = "drift"
	if f.all == nil {
		return nil
	}
	drift := layout.Compare(f.want, f.all).Drift
	for _, s := range f.found { // a retiring level must keep the promises too
		wanted := slices.ContainsFunc(f.want, func(w layout.Spec) bool { return w.Stream == s.Stream })
		if !wanted && s.Format <= layout.Format && s.Broken == nil {
			drift = append(drift, s.Drift(f.all[s.Stream].Config)...)
		}
	}
	var all []Finding
	for _, d := range drift {
		state := Warn
		if d.Fatal {
			state = Critical
		}
		all = append(all, verdict(name, state, "nats stream edit "+d.Stream+"; for subjects delaybroker provision",
			"%s", d)...)
	}
	if all == nil {
		return verdict(name, Fine, "", "none")
	}
	return all
}

// checkSeal looks at the secrets by which a message between lanes is proven to be a broker's.
func checkSeal(f Facts) []Finding {
	const name = "seal"
	if f.all == nil || len(f.found) == 0 {
		return nil
	}
	secrets, sealed := layout.Secrets(f.found)
	with := "DELAY_SECRET"
	if len(f.Config.Secrets) == 0 {
		with = "the secret in the streams' metadata"
	}
	switch none := len(secrets)+len(f.Config.Secrets) == 0; {
	case none && sealed.IsZero():
		return verdict(name, Warn, toProvision,
			"messages between lanes are not sealed: whoever can have one put there is believed")
	case none:
		return verdict(name, Critical, "set DELAY_SECRET to what the other brokers have",
			"messages are sealed since %s, and there is no secret", Moment(sealed))
	case sealed.IsZero():
		return verdict(name, Warn, toProvision,
			"messages are sealed with %s, and believed without: no stream says from when they are not", with)
	}
	return verdict(name, Fine, "", "messages are sealed with %s, and not believed without since %s",
		with, Moment(sealed))
}

func checkDurability(f Facts) []Finding {
	d := Durability{Clustered: f.clustered} // the version has a check of its own
	if f.serverName == EmbeddedName {
		d.Sync = f.Host.Sync
	}
	for _, l := range f.lanes.Lanes {
		if l.info != nil {
			d.Streams = append(d.Streams, l.info.Config)
		}
	}
	if len(d.Streams) == 0 {
		return nil
	}
	return []Finding{d.finding()}
}

func checkDeadLetters(f Facts) []Finding {
	const name = "dead letters"
	if f.all == nil || len(f.found) == 0 {
		return nil
	}
	for _, l := range f.lanes.Lanes {
		if l.Kind == layout.Dead && l.Pending > 0 {
			return verdict(name, Warn, "see what and why: delaybroker dead ls --by code,target,reason",
				"%d in %s", l.Pending, l.Stream)
		}
	}
	return verdict(name, Fine, "", "none")
}
