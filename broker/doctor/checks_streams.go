package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
)

// toProvision is the advice for streams that are missing, or lack metadata.
const toProvision = "run delaybroker provision, or start a broker without DELAY_PROVISION=verify, " +
	"as a user who may do it"

func checkStreams(f Facts) []Finding {
	switch {
	case errors.Is(f.findErr, nats.ErrPermissionViolation):
		return nil
	case f.findErr != nil:
		return following(verdict(Critical, "look at the servers: JetStream does not answer",
			"cannot be listed: %v", f.findErr), "connection", "JetStream")
	case f.All == nil:
		return nil
	}
	all := append(f.checkForeign(), f.checkMapping()...)
	if missing := f.missing(); len(missing) > 0 && all == nil { // a foreign stream would prevent their creation
		do := "run delaybroker provision"
		if len(f.Found) == 0 && f.Config.Provision {
			do = "start a broker, which creates them: delaybroker serve"
		}
		all = append(all, following(verdict(Critical, do,
			"%d of %d are missing: %s", len(missing), len(f.want), text.Few(missing)), "JetStream")...)
	}
	all = append(all, f.checkSchedules()...)
	for _, s := range streams.FindStranded(f.prefix, f.All) {
		all = append(all, verdict(Warn, "run a broker with DELAY_PREFIX="+s.Prefix+" until they are empty",
			"%s", s)...)
	}
	for _, l := range f.lanes.Lanes {
		all = append(all, f.checkState(l)...)
	}
	if all == nil {
		return verdict(Fine, "", "all %d are there", len(f.want))
	}
	return all
}

// missing returns the wanted streams that do not exist.
func (f Facts) missing() []string {
	return slices.DeleteFunc(streams.Compare(f.want, f.All).Missing,
		func(s string) bool { return slices.Contains(f.Away, s) })
}

// checkState looks for a reason why a single stream cannot be served.
func (f Facts) checkState(l inspect.Lane) []Finding {
	switch l.State {
	case inspect.Broken:
		return verdict(Critical, "nats stream edit "+l.Stream+", and restart the broker",
			"nobody serves %s: %s", l.Stream, l.Error)
	case inspect.Newer:
		if l.Owner != inspect.OwnerNobody {
			return nil // during an upgrade
		}
		return verdict(Critical, "upgrade the brokers", "%s is of a newer broker, and no broker reads it", l.Stream)
	case inspect.Silent:
		if slices.ContainsFunc(f.refused, func(r string) bool { return strings.HasSuffix(r, "."+l.Stream) }) {
			return nil // the request was not even sent
		}
		return following(verdict(Critical, "bring the servers back that hold its replicas",
			"%s does not answer: %s", l.Stream, l.Error), "JetStream")
	}
	return nil
}

func checkDrift(f Facts) []Finding {
	if f.All == nil {
		return nil
	}
	drift := streams.Compare(f.want, f.All).Drift
	for _, s := range f.Found { // a retiring level must keep the promises too
		if _, wanted := inspect.SpecOf(f.want, s.Stream); !wanted && s.Format <= streams.Format && s.Broken == nil {
			drift = append(drift, s.Drift(f.All[s.Stream].Config)...)
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
		found := verdict(state, do, "%s", d)
		if d.Mend == streams.ByProvision {
			found = following(found, "streams")
		}
		all = append(all, found...)
	}
	if all == nil {
		return verdict(Fine, "", "none")
	}
	return all
}

// checkSeal checks the secrets by which a broker authenticates a message between lanes.
func checkSeal(f Facts) []Finding {
	if f.All == nil || len(f.Found) == 0 {
		return nil
	}
	for _, l := range f.lanes.Lanes {
		if l.UnknownKey {
			return verdict(Critical, "set DELAY_SECRET to what the brokers have",
				"what %s holds is sealed with a secret that these settings do not have", l.Stream)
		}
	}
	secrets, sealed := streams.Secrets(f.Found)
	with := "DELAY_SECRET"
	if len(f.Config.Secrets) == 0 {
		with = "the secret in the streams' metadata"
	}
	switch none := len(secrets)+len(f.Config.Secrets) == 0; {
	case none && sealed.IsZero():
		return verdict(Warn, toProvision,
			"messages between lanes are not sealed: whoever can have one put there is believed")
	case none:
		return verdict(Critical, "set DELAY_SECRET to what the other brokers have",
			"messages are sealed since %s, and there is no secret", text.Moment(sealed))
	case sealed.IsZero():
		return verdict(Warn, toProvision,
			"messages are sealed with %s, and believed without: no stream says from when they are not", with)
	}
	return verdict(Fine, "", "messages are sealed with %s, and not believed without since %s",
		with, text.Moment(sealed))
}

func checkDurability(f Facts) []Finding {
	d := Durability{Clustered: f.clustered} // the version has its own check
	if f.serverName == EmbeddedName {
		d.Sync = f.Host.Sync
	}
	for _, l := range f.lanes.Lanes {
		if l.Info != nil {
			d.Streams = append(d.Streams, l.Info.Config)
		}
	}
	if len(d.Streams) == 0 {
		return nil
	}
	return []Finding{d.finding()}
}

const (
	// A few dead letters older than lettersOld are not reported; lettersMany is more than a few.
	lettersOld  = 24 * time.Hour
	lettersMany = 1000
)

func checkDeadLetters(f Facts) []Finding {
	if f.All == nil || len(f.Found) == 0 {
		return nil
	}
	for _, l := range f.lanes.Lanes {
		if l.Kind != streams.Dead || l.Pending == 0 || l.Info == nil {
			continue
		}
		age := max(0, l.Info.TimeStamp.Sub(l.Info.State.LastTime))
		detail := fmt.Sprintf("%d in %s, the newest %s old", l.Pending, l.Stream, text.Span(age))
		if age >= lettersOld && l.Pending < lettersMany {
			return verdict(Fine, "", "%s", detail)
		}
		do := "see what and why: delaybroker dead ls --by code,target,reason"
		for code, n := range f.codes {
			if n*10 >= l.Pending*9 {
				detail += fmt.Sprintf(", %d of them %s", n, code)
				do = fmt.Sprintf("see what and why: delaybroker dead ls --code %s --by target,reason", code)
			}
		}
		return verdict(Warn, do, "%s", detail)
	}
	return verdict(Fine, "", "none")
}
