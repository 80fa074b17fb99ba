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

func checkStreams(f Facts) []Finding {
	switch {
	case errors.Is(f.findErr, nats.ErrPermissionViolation):
		return nil
	case f.findErr != nil:
		return consequenceOf(finding(Critical, "check the servers: JetStream does not answer",
			"the streams cannot be listed: %v", f.findErr), "connection", "JetStream")
	case f.Infos == nil:
		return nil
	}
	findings := append(f.checkForeign(), f.checkMapping()...)
	// While another stream or a mapping conflicts, no broker can create the missing streams.
	if missing := f.missingStreams(); len(missing) > 0 && findings == nil {
		advice := "run delaybroker provision"
		if len(f.Found) == 0 && f.Config.Provision {
			advice = "start a broker, which creates the streams: delaybroker serve"
		}
		findings = append(findings, consequenceOf(finding(Critical, advice,
			"%d of %d are missing: %s", len(missing), len(f.want), text.ShortList(missing)), "JetStream")...)
	}
	findings = append(findings, f.checkSchedules()...)
	for _, s := range streams.FindStranded(f.names.Prefix(), f.Infos) {
		findings = append(findings, finding(Warn, "run a broker with DELAY_PREFIX="+s.Prefix+" until they are empty",
			"%s", s)...)
	}
	for _, name := range streams.Copies(f.Infos) {
		findings = append(findings, finding(Warn, streams.CopyAdvice(name),
			"%s is a copy of one of a broker's streams: no broker reads its messages", name)...)
	}
	for _, l := range f.lanes.Lanes {
		findings = append(findings, f.checkState(l)...)
	}
	if findings == nil {
		return finding(Fine, "", "all %d exist", len(f.want))
	}
	return findings
}

// missingStreams returns the wanted streams that do not exist.
func (f Facts) missingStreams() []string {
	return slices.DeleteFunc(streams.Compare(f.want, f.Infos).MissingStreams,
		func(s string) bool { return slices.Contains(f.Leaderless, s) })
}

// checkState reports a stream that no broker can serve.
func (f Facts) checkState(l inspect.Lane) []Finding {
	switch l.State {
	case inspect.Broken:
		return finding(Critical, "nats stream edit "+l.Stream+", and restart the broker",
			"no broker serves %s: %s", l.Stream, l.Error)
	case inspect.Silent:
		if slices.ContainsFunc(f.refused, func(r string) bool { return strings.HasSuffix(r, "."+l.Stream) }) {
			return nil // see checkRights
		}
		return consequenceOf(finding(Critical, "start the servers with the replicas of "+l.Stream,
			"%s does not answer: %s", l.Stream, l.Error), "JetStream")
	}
	return nil
}

func checkDrift(f Facts) []Finding {
	if f.Infos == nil {
		return nil
	}
	drift := streams.Compare(f.want, f.Infos).Drift
	for _, s := range f.Found { // for the streams that are not in f.want, such as retiring levels
		if _, wanted := streams.SpecOf(f.want, s.Stream); !wanted && s.MarksErr == nil {
			drift = append(drift, s.Drift(f.Infos[s.Stream].Config)...)
		}
	}
	var findings []Finding
	for _, d := range drift {
		if d.LessDurable {
			continue // see checkDurability
		}
		state := Warn
		if d.Fatal {
			state = Critical
		}
		advice, causes := "nats stream edit "+d.Stream, []string(nil)
		switch d.Fix {
		case streams.FixByProvision:
			advice, causes = "run delaybroker provision", []string{"streams"}
		case streams.FixByRecreation:
			advice = fmt.Sprintf("an edit cannot correct this drift; when the messages of the stream are no longer needed,"+
				" run nats stream rm %s and delaybroker provision", d.Stream)
		}
		findings = append(findings, consequenceOf(finding(state, advice, "%s", d), causes...)...)
	}
	if findings == nil {
		return finding(Fine, "", "none")
	}
	return findings
}

// checkSeal checks the secrets of the seals.
func checkSeal(f Facts) []Finding {
	if len(f.Found) == 0 {
		return nil
	}
	for _, l := range f.lanes.Lanes {
		if l.UnknownKey {
			return finding(Critical, "set DELAY_SECRET to the brokers' value",
				"the messages in %s are sealed with a secret that is not set here", l.Stream)
		}
	}
	switch {
	case len(f.Config.Secrets) > 0:
		return finding(Fine, "", "messages are sealed with DELAY_SECRET")
	case streams.SecretElsewhere(f.Found):
		return finding(Critical, "set DELAY_SECRET to the other brokers' value",
			"the streams keep no secret, and no secret is set")
	}
	return finding(Fine, "", "messages are sealed with the secret in the streams' metadata")
}

func checkDurability(f Facts) []Finding {
	d := Durability{Clustered: f.clustered} // without Version: checkServer reports vulnerabilities
	if f.serverName == EmbeddedName {
		d.Sync = f.Host.Sync
		if detail := f.Host.Probe.detail("durability", true); d.Sync == nil && detail != "" {
			return finding(Fine, "", "%s", detail) // the sentence of the broker that embeds the server
		}
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
	// oldLetters is the age of the newest dead letter from which on there is no warning.
	oldLetters = 24 * time.Hour
	// manyLetters is the number of dead letters from which on there is a warning, whatever their age.
	manyLetters = 1000
)

func checkDeadLetters(f Facts) []Finding {
	if len(f.Found) == 0 {
		return nil
	}
	for _, l := range f.lanes.Lanes {
		if l.Kind != streams.Dead || l.Pending == 0 || l.Info == nil {
			continue
		}
		age := max(0, l.Info.TimeStamp.Sub(l.Info.State.LastTime))
		detail := fmt.Sprintf("%d in %s, the newest %s old", l.Pending, l.Stream, text.Span(age))
		if age >= oldLetters && l.Pending < manyLetters {
			return finding(Fine, "", "%s", detail)
		}
		advice := "read the reasons: delaybroker dead ls --by code,target,reason"
		for code, n := range f.codes {
			if n*10 >= l.Pending*9 {
				detail += fmt.Sprintf(", %d of them %s", n, code)
				advice = fmt.Sprintf("read the reasons: delaybroker dead ls --code %s --by target,reason", code)
			}
		}
		return finding(Warn, advice, "%s", detail)
	}
	return finding(Fine, "", "none")
}
