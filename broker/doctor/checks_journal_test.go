package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestCheckJournal(t *testing.T) {
	now := time.Now()
	facts := func(bytes uint64, age time.Duration, answers ...stats.InstanceStatus) Facts {
		info := &jetstream.StreamInfo{TimeStamp: now}
		info.Config.MaxAge, info.Config.MaxBytes = 7*24*time.Hour, 1000
		info.State.Bytes, info.State.FirstTime = bytes, now.Add(-age)
		f := Facts{StreamList: inspect.StreamList{
			Infos: map[string]*jetstream.StreamInfo{"DELAY_JOURNAL": info},
			Found: []streams.Spec{{Stream: "DELAY_JOURNAL", Kind: streams.Journal}},
		}}
		f.instances.Answers = answers
		return f
	}
	withJournal, noJournal := stats.InstanceStatus{Instance: "a", Journal: true}, stats.InstanceStatus{Instance: "b"}
	for _, test := range []struct {
		name  string
		facts Facts
		state Severity
		part  string
	}{
		{"with room", facts(500, time.Hour, withJournal), Fine, "kept for 7d, 500 of 1000 bytes"},
		{"no instance answers", facts(500, time.Hour), Fine, "kept for 7d"},
		{"full, with records of the configured age", facts(990, 7*24*time.Hour, withJournal), Fine, "kept for 7d"},
		{"full", facts(990, 84*time.Hour, withJournal), Warn, "the records of the last 3d12h instead of 7d"},
		{"one instance without a journal", facts(500, time.Hour, withJournal, noJournal), Warn,
			"the journal lacks the deliveries of these instances: b"},
		{"no instance with a journal", facts(500, time.Hour, noJournal), Fine,
			"the records in DELAY_JOURNAL expire within 7d"},
	} {
		got := checkJournal(test.facts)
		if len(got) != 1 || got[0].Severity != test.state || !strings.Contains(got[0].Detail, test.part) {
			t.Errorf("%s: got %+v, want %q", test.name, got, test.part)
		}
	}
	if got := checkJournal(Facts{StreamList: inspect.StreamList{Infos: map[string]*jetstream.StreamInfo{}}}); got != nil {
		t.Errorf("without a journal: got %+v, want no finding", got)
	}
}

// TestJournalIsNoDrift: a journal without DELAY_JOURNAL in the settings is no drift.
func TestJournalIsNoDrift(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "1s 5s")
		cfg.Journal = 24 * time.Hour
		provisionStreams(t, s, cfg)
		for _, journal := range []time.Duration{24 * time.Hour, 0} {
			cfg.Journal = journal
			f := Gather(t.Context(), harness.InspectAs(t, s, cfg, ""), Host{}, nil)
			if got := checkDrift(f); len(got) != 1 || got[0].Severity != Fine {
				t.Errorf("drift %+v, want none", got)
			}
		}
	})
}
