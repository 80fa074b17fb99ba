package streams

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func journalSpec() Spec {
	return Spec{Kind: Journal, Stream: "DELAY_JOURNAL", Subjects: []string{"delaysys.journal"}, Prefix: "delay",
		MaxMsgSize: -1, MaxAge: time.Hour, MaxBytes: 1 << 20, Duplicates: time.Minute, Replicas: 1}
}

// journalHarmfulChanges are changes of settings with which records could be missing, or the journal could harm lanes.
// Says is a part of the reported difference.
var journalHarmfulChanges = map[string]struct {
	change func(*config)
	says   string
}{
	"Subjects":          {func(c *config) { c.Subjects = []string{"x"} }, "does not listen on delaysys.journal"},
	"Retention":         {func(c *config) { c.Retention = jetstream.WorkQueuePolicy }, "retention"},
	"MaxMsgs":           {func(c *config) { c.MaxMsgs = 9 }, "max_msgs is 9"},
	"MaxBytes":          {func(c *config) { c.MaxBytes = -1 }, "max_bytes is -1, want 1048576"},
	"MaxAge":            {func(c *config) { c.MaxAge = 0 }, "max_age is none, want 1h"},
	"MaxMsgsPerSubject": {func(c *config) { c.MaxMsgsPerSubject = 9 }, "per subject 9"},
	"MaxMsgSize":        {func(c *config) { c.MaxMsgSize = 1024 }, "max_msg_size"},
	"Discard":           {func(c *config) { c.Discard = jetstream.DiscardNew }, "discard is new"},
	"Storage":           {func(c *config) { c.Storage = jetstream.MemoryStorage }, "storage"},
	"NoAck":             {func(c *config) { c.NoAck = true }, "acknowledges nothing"},
	"Mirror":            {func(c *config) { c.Mirror = &jetstream.StreamSource{Name: "O"} }, "a mirror"},
	"Sealed":            {func(c *config) { c.Sealed = true }, "sealed"},
	"SubjectTransform":  {func(c *config) { c.SubjectTransform = &jetstream.SubjectTransformConfig{} }, "transforms"},
	"RePublish":         {func(c *config) { c.RePublish = &jetstream.RePublish{Destination: "seen.>"} }, "seen.>"},
	"AllowRollup":       {func(c *config) { c.AllowRollup = true }, "headers"},
	"AllowMsgTTL":       {func(c *config) { c.AllowMsgTTL = true }, "headers"},
	"AllowMsgCounter":   {func(c *config) { c.AllowMsgCounter = true }, "headers"},
	"AllowMsgSchedules": {func(c *config) { c.AllowMsgSchedules = true }, "headers"},
}

// journalHarmlessSettings are settings that matter for a lane and not for the journal: a reader counts a batch once
// even if the stream has it twice, and ignores messages without a broker's seal.
var journalHarmlessSettings = []string{
	"Duplicates", "MaxConsumers", "ConsumerLimits", "Sources", "DenyDelete", "DenyPurge", "PersistMode",
	"DiscardNewPerSubject",
}

// TestEverySettingOfTheJournalIsJudged: each setting is judged, and none of them prevents a broker from starting.
func TestEverySettingOfTheJournalIsJudged(t *testing.T) {
	spec := journalSpec()
	if drift := spec.Drift(spec.Config()); len(drift) > 0 {
		t.Fatalf("drift %v of the wanted configuration, want none", drift)
	}
	for name, tt := range journalHarmfulChanges {
		cfg := spec.Config()
		tt.change(&cfg)
		if drift := spec.Drift(cfg); len(drift) != 1 || drift[0].Fatal || !strings.Contains(drift[0].Difference, tt.says) {
			t.Errorf("%s: drift %+v, want one with %q, not fatal", name, drift, tt.says)
		}
	}
	known := slices.Concat(harmlessSettings, journalHarmlessSettings, slices.Collect(maps.Keys(journalHarmfulChanges)))
	for field := range reflect.TypeFor[jetstream.StreamConfig]().Fields() {
		if !slices.Contains(known, field.Name) {
			t.Errorf("no decision about %s: can it harm records?", field.Name)
		}
	}
}

// TestLimitJournal: the maximum age and size of the records are applied. The server also requires a duplicate window
// that is not longer than the maximum age.
func TestLimitJournal(t *testing.T) {
	spec := journalSpec()
	has := spec.Config()
	if applyLimits(&has, spec) {
		t.Error("the wanted configuration was changed")
	}
	spec.MaxAge, spec.MaxBytes = time.Second, 2<<20
	if !applyLimits(&has, spec) || has.MaxAge != time.Second || has.MaxBytes != 2<<20 || has.Duplicates != time.Second {
		t.Errorf("got %+v, want the new limits", has)
	}
}

// TestUnwantedJournal: a journal that is no longer wanted is reported, with the time after which it is empty.
func TestUnwantedJournal(t *testing.T) {
	found := append(wantedSpecs("30m"), journalSpec())
	if left := UnwantedJournal(found, found); left != nil {
		t.Errorf("a wanted journal: got %v, want no drift", left)
	}
	const says = "DELAY_JOURNAL is off: the earlier journal is left unchanged, and becomes empty within 1h"
	if left := UnwantedJournal(wantedSpecs("30m"), found); len(left) != 1 || left[0].Fatal || left[0].Difference != says {
		t.Errorf("an unwanted journal: got %v, want %q", left, says)
	}
	found[len(found)-1].MaxAge = 0
	left := UnwantedJournal(nil, found)
	if len(left) != 1 || !strings.Contains(left[0].Difference, "remains until an operator deletes it") {
		t.Errorf("without a maximum age: got %v, want a journal that remains", left)
	}
}
