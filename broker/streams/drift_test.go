package streams

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

type config = jetstream.StreamConfig

// harmfulChanges are changes of settings with which a stream could change or lose accepted messages, or never remove
// them. Says is a part of the reported difference, or empty for a change without a report.
var harmfulChanges = map[string]struct {
	change func(*config)
	fatal  bool
	says   string
}{
	"Subjects":          {func(c *config) { c.Subjects = c.Subjects[1:] }, false, "does not listen on 1 of its 2"},
	"Retention":         {func(c *config) { c.Retention = jetstream.WorkQueuePolicy }, true, "retention"},
	"MaxConsumers":      {func(c *config) { c.MaxConsumers = 1 }, false, "max_consumers"},
	"MaxMsgs":           {func(c *config) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 9 }, true, "discard"},
	"MaxBytes":          {func(c *config) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 9 }, true, "discard"},
	"MaxAge":            {func(c *config) { c.MaxAge = time.Hour }, true, "max_age"},
	"MaxMsgsPerSubject": {func(c *config) { c.MaxMsgsPerSubject = 1 }, true, "max_msgs_per_subject"},
	"MaxMsgSize":        {func(c *config) { c.MaxMsgSize = 2 << 20 }, false, "max_msg_size"},
	"Storage":           {func(c *config) { c.Storage = jetstream.MemoryStorage }, false, "storage"},
	"NoAck":             {func(c *config) { c.NoAck = true }, true, "no_ack"},
	"Duplicates":        {func(c *config) { c.Duplicates = time.Second }, false, "duplicate_window"},
	"Mirror":            {func(c *config) { c.Mirror = &jetstream.StreamSource{Name: "O"} }, true, "mirror"},
	"Sources":           {func(c *config) { c.Sources = []*jetstream.StreamSource{{Name: "O"}} }, false, "sources"},
	"Sealed":            {func(c *config) { c.Sealed = true }, true, "sealed"},
	"DenyDelete":        {func(c *config) { c.DenyDelete = true }, false, "deny_delete"},
	"DenyPurge":         {func(c *config) { c.DenyPurge = true }, true, "deny_purge"},
	"AllowRollup":       {func(c *config) { c.AllowRollup = true }, true, "allow_rollup_hdrs"},
	"SubjectTransform": {func(c *config) { c.SubjectTransform = &jetstream.SubjectTransformConfig{} }, true,
		"subject_transform"},
	"RePublish": {func(c *config) { c.RePublish = &jetstream.RePublish{Destination: "seen.>"} }, false,
		"seen.>"},
	"ConsumerLimits": {func(c *config) { c.ConsumerLimits.InactiveThreshold = time.Minute }, true,
		"inactive_threshold"},
	"AllowMsgTTL":       {func(c *config) { c.AllowMsgTTL = true }, true, "allow_msg_ttl"},
	"AllowMsgCounter":   {func(c *config) { c.AllowMsgCounter = true }, true, "allow_msg_counter"},
	"AllowMsgSchedules": {func(c *config) { c.AllowMsgSchedules = true }, true, "allow_msg_schedules"},
	"PersistMode":       {func(c *config) { c.PersistMode = jetstream.AsyncPersistMode }, false, "persist_mode"},
	// DiscardNewPerSubject refuses new messages, and removes none.
	"DiscardNewPerSubject": {func(c *config) { c.DiscardNewPerSubject, c.MaxMsgsPerSubject = true, 1 }, false, ""},
	// Without a limit, discard has no effect.
	"Discard": {func(c *config) { c.Discard = jetstream.DiscardOld }, false, ""},
}

// harmlessSettings are the settings that cause no such harm to accepted messages.
var harmlessSettings = []string{
	"Name", "Description", "Replicas", "Placement", "Compression", "FirstSeq", "AllowDirect", "MirrorDirect", "Metadata",
	"Template",
	"SubjectDeleteMarkerTTL", // needs AllowMsgTTL
	"AllowAtomicPublish", "AllowBatchPublish",
}

// TestEverySettingIsJudged compares a stream that has one changed setting with the wanted stream. Every setting must be
// in one of the two tables, so a new setting of nats.go fails the test.
func TestEverySettingIsJudged(t *testing.T) {
	spec := wantedSpecs("30m")[0]
	if drift := spec.Drift(spec.Config()); len(drift) > 0 {
		t.Fatalf("drift %v of the wanted configuration, want none", drift)
	}
	for name, tt := range harmfulChanges {
		cfg := spec.Config()
		tt.change(&cfg)
		switch drift := spec.Drift(cfg); {
		case tt.says == "" && len(drift) > 0:
			t.Errorf("%s: drift %v, want none", name, drift)
		case tt.says != "" &&
			(len(drift) != 1 || drift[0].Fatal != tt.fatal || !strings.Contains(drift[0].Difference, tt.says)):
			t.Errorf("%s: drift %+v, want one with %q, fatal %v", name, drift, tt.says, tt.fatal)
		}
	}
	for name, change := range map[string]func(*config){
		"smaller messages": func(c *config) { c.MaxMsgSize = 1000 },
		"a longer window":  func(c *config) { c.Duplicates = time.Hour },
		"a limit":          func(c *config) { c.MaxBytes = 1 << 30 },
		"a description":    func(c *config) { c.Description = "mine" },
	} {
		cfg := spec.Config()
		if change(&cfg); len(spec.Drift(cfg)) > 0 {
			t.Errorf("%s: drift %v, want none", name, spec.Drift(cfg))
		}
	}
	known := slices.Concat(harmlessSettings, slices.Collect(maps.Keys(harmfulChanges)))
	for field := range reflect.TypeFor[jetstream.StreamConfig]().Fields() {
		if !slices.Contains(known, field.Name) {
			t.Errorf("no decision about %s: can it harm accepted messages?", field.Name)
		}
	}
}

// TestDriftOfDeadLetters: only the streams of lanes need consumers.
func TestDriftOfDeadLetters(t *testing.T) {
	specs := wantedSpecs("30m")
	dead := specs[len(specs)-1]
	cfg := dead.Config()
	cfg.MaxConsumers, cfg.ConsumerLimits.InactiveThreshold = 1, time.Minute
	if drift := dead.Drift(cfg); len(drift) > 0 {
		t.Errorf("drift %v of the dead letters, want none: they are not read in order", drift)
	}
}

// TestServerAcceptsAdvisedEdits: if a difference can be edited, the server accepts the edit. If the stream must be
// created again, the server refuses the edit.
func TestServerAcceptsAdvisedEdits(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		js := s.JetStream(s.Connect())
		timers := wantedSpecs("30m")[0]
		timers.Kind, timers.Delay = Timers, 0
		for _, spec := range []Spec{wantedSpecs("30m")[0], timers} {
			for name, tt := range harmfulChanges {
				cfg := spec.Config()
				tt.change(&cfg)
				drift := spec.Drift(cfg)
				if _, err := js.CreateStream(t.Context(), cfg); err != nil {
					continue // the server does not allow such a stream
				}
				_, err := js.UpdateStream(t.Context(), spec.Config())
				for _, d := range drift {
					if d.Fix != FixByProvision && (d.Fix == FixByRecreation) != (err != nil) {
						t.Errorf("kind %v, %s: %v; the fix is %d, and the edit returns %v", spec.Kind, name, d, d.Fix, err)
					}
				}
				if err := js.DeleteStream(t.Context(), spec.Stream); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
