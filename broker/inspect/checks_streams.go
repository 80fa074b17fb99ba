package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/streams"
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
		return following(verdict(name, Critical, "look at the servers: JetStream does not answer",
			"cannot be listed: %v", f.findErr), "connection", "JetStream")
	case f.all == nil:
		return nil
	}
	all := append(f.checkForeign(), f.checkMapping()...)
	if missing := f.missing(); len(missing) > 0 && all == nil { // they can be made when nothing foreign is in the way
		do := "run delaybroker provision"
		if len(f.found) == 0 && f.Config.Provision {
			do = "start a broker, which creates them: delaybroker serve"
		}
		all = append(all, following(verdict(name, Critical, do,
			"%d of %d are missing: %s", len(missing), len(f.want), few(missing)), "JetStream")...)
	}
	all = append(all, f.checkSchedules()...)
	for _, s := range streams.FindStranded(f.prefix, f.all) {
		all = append(all, verdict(name, Warn, "run a broker with DELAY_PREFIX="+s.Prefix+" until they are empty",
			"%s", s)...)
	}
	for _, l := range f.lanes.Lanes {
		all = append(all, f.checkState(l)...)
	}
	if all == nil {
		return verdict(name, Fine, "", "all %d are there", len(f.want))
	}
	return all
}

// missing are the wanted streams that are not there.
func (f Facts) missing() []string {
	return slices.DeleteFunc(streams.Compare(f.want, f.all).Missing,
		func(s string) bool { return slices.Contains(f.away, s) })
}

// checkState looks at what keeps a single stream from being served.
func (f Facts) checkState(l Lane) []Finding {
	const name = "streams"
	switch l.State {
	case Broken:
		return verdict(name, Critical, "nats stream edit "+l.Stream+", and restart the broker",
			"nobody serves %s: %s", l.Stream, l.Error)
	case Newer:
		if l.Owner != OwnerNobody {
			return nil // in the middle of an upgrade
		}
		return verdict(name, Critical, "upgrade the brokers", "%s is of a newer broker, and nobody reads it", l.Stream)
	case Silent:
		if slices.ContainsFunc(f.refused, func(r string) bool { return strings.HasSuffix(r, "."+l.Stream) }) {
			return nil // it was not even asked
		}
		return following(verdict(name, Critical, "bring the servers back that hold its replicas",
			"%s does not answer: %s", l.Stream, l.Error), "JetStream")
	}
	return nil
}

func checkDrift(f Facts) []Finding {
	const name = "drift"
	if f.all == nil {
		return nil
	}
	drift := streams.Compare(f.want, f.all).Drift
	for _, s := range f.found { // a retiring level must keep the promises too
		if _, wanted := specOf(f.want, s.Stream); !wanted && s.Format <= streams.Format && s.Broken == nil {
			drift = append(drift, s.Drift(f.all[s.Stream].Config)...)
		}
	}
	var all []Finding
	for _, d := range drift {
		if d.Unsafe {
			continue // see checkDurability
		}
		state := Warn
		if d.Fatal {
			state = Critical
		}
		do := "nats stream edit " + d.Stream
		switch d.Mend {
		case streams.ByProvision:
			do = "run delaybroker provision"
		case streams.ByAnew:
			do = fmt.Sprintf("no edit takes that back: when what it holds may go, nats stream rm %s,"+
				" and delaybroker provision", d.Stream)
		}
		found := verdict(name, state, do, "%s", d)
		if d.Mend == streams.ByProvision {
			found = following(found, "streams")
		}
		all = append(all, found...)
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
	for _, l := range f.lanes.Lanes {
		if l.unknownKey {
			return verdict(name, Critical, "set DELAY_SECRET to what the brokers have",
				"what %s holds is sealed with a secret that these settings do not have", l.Stream)
		}
	}
	secrets, sealed := streams.Secrets(f.found)
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

const (
	// A few dead letters that are older than lettersOld are no news; lettersMany is more than a few.
	lettersOld  = 24 * time.Hour
	lettersMany = 1000
)

func checkDeadLetters(f Facts) []Finding {
	const name = "dead letters"
	if f.all == nil || len(f.found) == 0 {
		return nil
	}
	for _, l := range f.lanes.Lanes {
		if l.Kind != streams.Dead || l.Pending == 0 || l.info == nil {
			continue
		}
		age := max(0, l.info.TimeStamp.Sub(l.info.State.LastTime))
		detail := fmt.Sprintf("%d in %s, the newest %s old", l.Pending, l.Stream, Span(age))
		if age >= lettersOld && l.Pending < lettersMany {
			return verdict(name, Fine, "", "%s", detail)
		}
		do := "see what and why: delaybroker dead ls --by code,target,reason"
		for code, n := range l.codes {
			if n*10 >= l.Pending*9 {
				detail += fmt.Sprintf(", %d of them %s", n, code)
				do = fmt.Sprintf("see what and why: delaybroker dead ls --code %s --by target,reason", code)
			}
		}
		return verdict(name, Warn, do, "%s", detail)
	}
	return verdict(name, Fine, "", "none")
}
