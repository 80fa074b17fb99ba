package streams

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Drift is a difference between the wanted and the actual configuration of a stream, for a report.
type Drift struct {
	Stream      string `json:"stream"`
	Difference  string `json:"what"`  // the difference, its consequence and the wanted value
	Fatal       bool   `json:"fatal"` // the broker cannot keep its promises with such a stream, and refuses to start
	LessDurable bool   `json:"-"`     // the stream is less durable than wanted
	Fix         Fix    `json:"-"`
}

// Fix is the way to remove a difference.
type Fix int

const (
	FixByEdit       Fix = iota // an operator edits the stream
	FixByProvision             // provisioning removes the difference
	FixByRecreation            // the server refuses to change the setting, so the stream must be created again
)

func (d Drift) String() string { return d.Stream + ": " + d.Difference }

// minConsumers is the lowest sufficient limit of consumers for a lane. The server counts the consumers of crashed
// readers until it removes them.
const minConsumers = 8

// InactiveThreshold is the time for which the server keeps the consumer of a reader that sends no requests. Such a
// reader has crashed, or has paused, for example because no message of its lane is due soon. After a pause, the reader
// creates a new consumer.
const InactiveThreshold = 5 * time.Minute

// Drift compares the settings on which these promises of the broker depend: accepted messages stay unchanged, can be
// read, and can be removed after delivery. The operator may choose the other settings: placement, compression,
// replicas, direct access, and, except for timers, publishing in batches. A limit may be lower than wanted, but not
// higher: with a higher max_msg_size, a stream would accept messages that cannot be moved to the next stream. The
// duplicate window may be longer than wanted, but not shorter.
func (s Spec) Drift(cfg jetstream.StreamConfig) []Drift {
	d := drifts{stream: s.Stream}
	if s.Kind == Journal {
		s.checkJournal(&d, cfg)
		return d.list
	}
	s.checkPromises(&d, cfg)
	s.checkRisks(&d, cfg)
	return d.list
}

type drifts struct {
	stream string
	list   []Drift
}

// The kinds of difference. The server refuses an update that would revert a permanent difference (nats-server,
// server/stream.go, configUpdateCheck).
var (
	warning          = Drift{}
	permanentWarning = Drift{Fix: FixByRecreation}
	lessDurable      = Drift{Fix: FixByRecreation, LessDurable: true}
	provisionFixes   = Drift{Fix: FixByProvision}
	fatal            = Drift{Fatal: true}
	permanentFatal   = Drift{Fatal: true, Fix: FixByRecreation}
)

func (d *drifts) check(differs bool, kind Drift, format string, args ...any) {
	if differs {
		kind.Stream, kind.Difference = d.stream, fmt.Sprintf(format, args...)
		d.list = append(d.list, kind)
	}
}

// checkPromises reports settings with which the broker cannot keep its promises.
func (s Spec) checkPromises(d *drifts, cfg jetstream.StreamConfig) {
	limited := cfg.MaxMsgs > 0 || cfg.MaxBytes > 0 || cfg.MaxMsgsPerSubject > 0
	discardsOld := cfg.Discard != jetstream.DiscardNew && limited
	consumers := cfg.ConsumerLimits.InactiveThreshold
	d.check(cfg.Retention != jetstream.LimitsPolicy, permanentFatal,
		"retention is %s: consumers would remove messages; want limits", cfg.Retention)
	d.check(cfg.MaxAge != 0, fatal,
		"max_age is %s: messages would be removed before they are due; want none", cfg.MaxAge)
	d.check(discardsOld, fatal, "discard is old with a limit set: accepted messages would be removed; want new")
	d.check(!discardsOld && cfg.MaxMsgsPerSubject > 0 && !cfg.DiscardNewPerSubject && s.Kind != Owners, fatal,
		"max_msgs_per_subject is %d: accepted messages would be removed; want none", cfg.MaxMsgsPerSubject)
	d.check(s.Kind == Timers && cfg.MaxMsgsPerSubject > 0 && cfg.DiscardNewPerSubject, fatal,
		"max_msgs_per_subject is %d: no timer could be replaced, cancelled or fired; want none", cfg.MaxMsgsPerSubject)
	d.check(s.Kind == Timers && cfg.DenyDelete, permanentFatal,
		"deny_delete is set: finished timers could not be removed; want it off")
	d.check(cfg.AllowRollup, fatal,
		"allow_rollup_hdrs is set: a header of one message would remove others; want it off")
	d.check(cfg.AllowMsgTTL, permanentFatal,
		"allow_msg_ttl is set: a header would remove a message before it is due; want it off")
	d.check(cfg.DenyPurge, permanentFatal,
		"deny_purge is set: moved messages could not be removed; want it off")
	d.check(cfg.Sealed, permanentFatal, "is sealed: nothing can be stored or removed")
	d.check(cfg.Mirror != nil, fatal, "is a mirror: nothing can be published to it")
	d.check(cfg.SubjectTransform != nil, fatal,
		"subject_transform is set: messages would be stored under other subjects than their publishers chose; want none")
	d.check(cfg.AllowMsgSchedules, permanentFatal, "allow_msg_schedules is set: a header would make the server "+
		"publish a message and remove it; want it off")
	d.check(cfg.AllowMsgCounter, permanentFatal,
		"allow_msg_counter is set: every message without a counter would be refused; want it off")
	d.check(s.Kind.IsLane() && consumers > 0 && consumers < InactiveThreshold, fatal,
		"consumer_limits.inactive_threshold is %s: no broker could create a consumer; want none, or at least %s",
		consumers, InactiveThreshold)
	d.check(cfg.NoAck, fatal, "no_ack is set: publishers cannot know that a message is stored")
}

// checkRisks reports other settings that can harm messages.
func (s Spec) checkRisks(d *drifts, cfg jetstream.StreamConfig) {
	d.check(cfg.Storage != jetstream.FileStorage, lessDurable,
		"storage is %s: pending messages do not survive a restart of the server", cfg.Storage)
	d.check(cfg.PersistMode == jetstream.AsyncPersistMode, lessDurable,
		"persist_mode is async: a crash of the server loses the messages acknowledged last; want default")
	d.check(s.Kind != Timers && cfg.DenyDelete, permanentWarning,
		"deny_delete is set: delivered messages behind an undelivered message cannot be "+
			"removed, and come again after a crash; want it off")
	d.check(s.Kind == Timers && cfg.AllowAtomicPublish, warning,
		"allow_atomic is set: a batch could change a timer several times; want it off")
	d.check(s.Kind == Owners && cfg.MaxMsgsPerSubject != 1, warning,
		"max_msgs_per_subject is %d: the counters of instances pile up; want 1", cfg.MaxMsgsPerSubject)
	d.check(len(cfg.Sources) > 0, warning,
		"has sources: messages of other streams are treated as requests; want none")
	if cfg.RePublish != nil {
		d.check(true, warning, "republish is set: messages are published on %s before they are due",
			cfg.RePublish.Destination)
	}
	d.check(s.Kind.IsLane() && cfg.MaxConsumers > 0 && cfg.MaxConsumers < minConsumers, warning,
		"max_consumers is %d: a broker must create a consumer in addition to those of its predecessors; "+
			"want none, or at least %d", cfg.MaxConsumers, minConsumers)
	d.check(s.MaxMsgSize > 0 && (cfg.MaxMsgSize <= 0 || cfg.MaxMsgSize > s.MaxMsgSize), warning,
		"max_msg_size is %d, want at most %d: larger messages are accepted but cannot be moved", cfg.MaxMsgSize, s.MaxMsgSize)
	d.check(exceeds(cfg.MaxMsgs, s.MaxMsgs), warning,
		"max_msgs is %d, want %d: more is accepted than configured", cfg.MaxMsgs, s.MaxMsgs)
	d.check(exceeds(cfg.MaxBytes, s.MaxBytes), warning,
		"max_bytes is %d, want %d: more is accepted than configured", cfg.MaxBytes, s.MaxBytes)
	d.check(cfg.Duplicates < s.Duplicates, warning,
		"duplicate_window is %s, want at least %s", cfg.Duplicates, s.Duplicates)
	if missing := Subtract(s.Subjects, cfg.Subjects); len(missing) > 0 {
		d.check(true, provisionFixes, "does not listen on %d of its %d subjects, such as %s",
			len(missing), len(s.Subjects), missing[0])
	}
}

// exceeds reports whether a limit is wanted, and the actual limit is missing or higher.
func exceeds(actual, want int64) bool { return want > 0 && (actual <= 0 || actual > want) }
