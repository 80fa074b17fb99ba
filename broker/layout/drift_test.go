package layout

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// judged are the settings by which a stream could change, lose or keep what it accepted, and what is said of each.
var judged = map[string]struct {
	change func(*jetstream.StreamConfig)
	fatal  bool
	says   string
}{
	"Subjects":             {func(c *jetstream.StreamConfig) { c.Subjects = c.Subjects[1:] }, false, "does not listen on 1 of its 2"},
	"Retention":            {func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, true, "retention"},
	"MaxConsumers":         {func(c *jetstream.StreamConfig) { c.MaxConsumers = 1 }, false, "max_consumers"},
	"MaxMsgs":              {func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 9 }, true, "discard"},
	"MaxBytes":             {func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 9 }, true, "discard"},
	"MaxAge":               {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, true, "max_age"},
	"MaxMsgsPerSubject":    {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, true, "max_msgs_per_subject"},
	"MaxMsgSize":           {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 2 << 20 }, false, "max_msg_size"},
	"Storage":              {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, false, "storage"},
	"NoAck":                {func(c *jetstream.StreamConfig) { c.NoAck = true }, true, "no_ack"},
	"Duplicates":           {func(c *jetstream.StreamConfig) { c.Duplicates = time.Second }, false, "duplicate_window"},
	"Mirror":               {func(c *jetstream.StreamConfig) { c.Mirror = &jetstream.StreamSource{Name: "O"} }, true, "mirror"},
	"Sources":              {func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "O"}} }, false, "sources"},
	"Sealed":               {func(c *jetstream.StreamConfig) { c.Sealed = true }, true, "sealed"},
	"DenyDelete":           {func(c *jetstream.StreamConfig) { c.DenyDelete = true }, false, "deny_delete"},
	"DenyPurge":            {func(c *jetstream.StreamConfig) { c.DenyPurge = true }, true, "deny_purge"},
	"AllowRollup":          {func(c *jetstream.StreamConfig) { c.AllowRollup = true }, true, "allow_rollup_hdrs"},
	"SubjectTransform":     {func(c *jetstream.StreamConfig) { c.SubjectTransform = &jetstream.SubjectTransformConfig{} }, true, "subject_transform"},
	"RePublish":            {func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Destination: "seen.>"} }, false, "seen.>"},
	"ConsumerLimits":       {func(c *jetstream.StreamConfig) { c.ConsumerLimits.InactiveThreshold = time.Minute }, true, "inactive_threshold"},
	"AllowMsgTTL":          {func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }, true, "allow_msg_ttl"},
	"AllowMsgCounter":      {func(c *jetstream.StreamConfig) { c.AllowMsgCounter = true }, true, "allow_msg_counter"},
	"AllowMsgSchedules":    {func(c *jetstream.StreamConfig) { c.AllowMsgSchedules = true }, true, "allow_msg_schedules"},
	"PersistMode":          {func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, false, "persist_mode"},
	"DiscardNewPerSubject": {func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject, c.MaxMsgsPerSubject = true, 1 }, false, ""}, // refuses, as it should
	"Discard":              {func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, false, ""},                      // without a limit
}

// indifferent are the settings by which it could not.
var indifferent = []string{
	"Name", "Description", "Replicas", "Placement", "Compression", "FirstSeq", "AllowDirect", "MirrorDirect", "Metadata", "Template",
	"SubjectDeleteMarkerTTL", // needs AllowMsgTTL
	"AllowAtomicPublish", "AllowBatchPublish",
}

// TestEverySettingIsJudged holds a stream with one setting changed against what is wanted. A setting that a new nats.go
// brings has to be thought about.
func TestEverySettingIsJudged(t *testing.T) {
	spec := want("30m")[0]
	if drift := spec.Drift(spec.Config()); len(drift) > 0 {
		t.Fatalf("drift %v of what is wanted", drift)
	}
	for name, tt := range judged {
		cfg := spec.Config()
		tt.change(&cfg)
		switch drift := spec.Drift(cfg); {
		case tt.says == "" && len(drift) > 0:
			t.Errorf("%s: drift %v, want none", name, drift)
		case tt.says != "" && (len(drift) != 1 || drift[0].Fatal != tt.fatal || !strings.Contains(drift[0].What, tt.says)):
			t.Errorf("%s: drift %+v, want one with %q, fatal %v", name, drift, tt.says, tt.fatal)
		}
	}
	known := slices.Concat(indifferent, slices.Collect(maps.Keys(judged)))
	for field := range reflect.TypeFor[jetstream.StreamConfig]().Fields() {
		if !slices.Contains(known, field.Name) {
			t.Errorf("nobody has judged what %s does to what was accepted", field.Name)
		}
	}
}

// TestDriftOfWhatIsNoLane: the bounds on consumers are for those who read.
func TestDriftOfWhatIsNoLane(t *testing.T) {
	specs := want("30m")
	dead := specs[len(specs)-1]
	cfg := dead.Config()
	cfg.MaxConsumers, cfg.ConsumerLimits.InactiveThreshold = 1, time.Minute
	if drift := dead.Drift(cfg); len(drift) > 0 {
		t.Errorf("drift %v of the dead letters, want none: nobody reads them in order", drift)
	}
}
