package streams

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/levels"
)

// The metadata keys that mark a stream as the broker's. The broker does not change other keys.
const (
	metaKind   = "delaybroker.kind"
	metaLevel  = "delaybroker.level"
	metaPrefix = "delaybroker.prefix"
	metaSecret = "delaybroker.secret" // see Secrets
	metaStream = "delaybroker.stream" // the stream's name: without it, the marks belong to another stream, see Copies
)

// Kind is the purpose of a stream.
type Kind string

// The kinds of stream.
const (
	Intake Kind = "intake"
	Level  Kind = "level"
	Retry  Kind = "retry"
	Paused Kind = "paused" // messages of paused targets; the subject of each pause is a separate lane
	Timers Kind = "timers" // named timers: the last message of each subject is the state of one timer

	// The streams of these kinds are not lanes, because they are not read in order.
	Dead    Kind = "dead"    // dead letters
	Owners  Kind = "owners"  // the owners of lanes
	Journal Kind = "journal" // records of deliveries, for a limited time
)

// LaneKinds returns the kinds of stream that are read in order, in the order in which a message passes them.
func LaneKinds() []Kind { return []Kind{Intake, Timers, Level, Retry, Paused} }

// IsLane reports whether streams of this kind are read in order.
func (k Kind) IsLane() bool { return slices.Contains(LaneKinds(), k) }

// WaitsForTarget reports whether the messages in streams of this kind wait for their targets: for another attempt, or
// for the end of a pause. Then lateness is not the broker's.
func (k Kind) WaitsForTarget() bool { return k == Retry || k == Paused }

// CompareLanes compares streams by the order in which messages pass through them: the intake, the timers, the levels
// from the shortest to the longest, the retry lanes, the paused messages, the dead letters. Streams of other kinds come
// first.
func CompareLanes(a, b Spec) int {
	kinds := append(LaneKinds(), Dead)
	return cmp.Or(
		cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
		cmp.Compare(a.Delay, b.Delay),
		strings.Compare(a.Stream, b.Stream))
}

// SpecOf returns the specification of a stream.
func SpecOf(specs []Spec, stream string) (Spec, bool) {
	return find(specs, func(s Spec) bool { return s.Stream == stream })
}

// SpecOfKind returns the specification of the first stream of a kind.
func SpecOfKind(specs []Spec, kind Kind) (Spec, bool) {
	return find(specs, func(s Spec) bool { return s.Kind == kind })
}

func find(specs []Spec, match func(Spec) bool) (Spec, bool) {
	if i := slices.IndexFunc(specs, match); i >= 0 {
		return specs[i], true
	}
	return Spec{}, false
}

// Spec describes one of the broker's streams, as wanted or as found.
type Spec struct {
	Stream   string
	Kind     Kind
	Name     string        // of a level or a retry lane, as in subjects: "30m"; empty for other kinds
	Delay    time.Duration // the time for which every message waits in a level or a retry lane; otherwise zero
	Prefix   string
	Subjects []string

	MaxMsgSize int32         // bytes of headers and payload; -1 for no bound
	MaxMsgs    int64         // pending messages; zero for no bound
	MaxBytes   int64         // bytes of pending messages; zero for no bound
	MaxAge     time.Duration // only for the journal: the time for which a record is kept
	Replicas   int           // copies in a cluster; not compared, so that operators may change it
	Duplicates time.Duration // the duplicate window for Nats-Msg-Id

	Secret string // the keys of the brokers' seals are derived from it; empty if the secret is configured: see Secrets

	// MarksErr is the error in the marks of a found stream. The broker neither serves nor changes such a stream, because
	// it might misread the messages.
	MarksErr error
}

// Config returns the configuration with which to create the stream.
func (s Spec) Config() jetstream.StreamConfig {
	cfg := jetstream.StreamConfig{
		Name:        s.Stream,
		Description: strings.Replace(descriptions[s.Kind], "NAME", s.Name, 1),
		Subjects:    s.Subjects,
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxMsgSize:  s.MaxMsgSize,
		MaxMsgs:     cmp.Or(s.MaxMsgs, -1),
		MaxBytes:    cmp.Or(s.MaxBytes, -1),
		Replicas:    s.Replicas,
		Duplicates:  s.Duplicates,
		AllowDirect: true, // for operators, and for the broker's reads of timers before they are due
		Metadata: map[string]string{
			metaKind: string(s.Kind), metaLevel: s.Name, metaPrefix: s.Prefix, metaStream: s.Stream,
		},
	}
	switch s.Kind {
	case Owners:
		cfg.MaxMsgsPerSubject = 1 // only the last message of a subject counts
	case Journal:
		cfg.MaxAge, cfg.Discard = s.MaxAge, jetstream.DiscardOld
	}
	if s.Secret != "" {
		cfg.Metadata[metaSecret] = s.Secret
	}
	return cfg
}

// descriptions has the description of the streams of each kind. The name of the stream replaces NAME.
var descriptions = map[Kind]string{
	Intake:  "delaybroker: messages on their way to a level; do not purge",
	Level:   "delaybroker: each message waits NAME here; do not purge",
	Retry:   "delaybroker: refused deliveries wait NAME here; do not purge",
	Paused:  "delaybroker: due messages wait here while their target is paused; do not purge",
	Timers:  "delaybroker: named timers, each the last message of its subject; do not purge",
	Owners:  "delaybroker: the owners of the lanes",
	Journal: "delaybroker: records of deliveries",
	Dead:    "delaybroker: undeliverable messages, with reasons",
}

// parseMarks parses the marks of a stream. Ok is false if the stream is not the broker's.
func parseMarks(cfg jetstream.StreamConfig, prefix string) (spec Spec, ok bool) {
	kind := Kind(cfg.Metadata[metaKind])
	if kind == "" || cfg.Metadata[metaPrefix] != prefix || cfg.Metadata[metaStream] != cfg.Name {
		return Spec{}, false
	}
	spec = Spec{
		Stream: cfg.Name, Kind: kind, Name: cfg.Metadata[metaLevel], Prefix: cfg.Metadata[metaPrefix], Subjects: cfg.Subjects,
		MaxMsgSize: cfg.MaxMsgSize, Replicas: cfg.Replicas, Duplicates: cfg.Duplicates,
		Secret: cfg.Metadata[metaSecret],
	}
	if kind == Journal {
		spec.MaxAge = cfg.MaxAge
	}
	if descriptions[kind] == "" {
		spec.MarksErr = fmt.Errorf("metadata %s is %q, which this broker does not know", metaKind, kind)
	}
	if kind == Level || kind == Retry {
		var err error
		if spec.Delay, err = levels.ParseDuration(spec.Name); err != nil {
			spec.MarksErr = fmt.Errorf("metadata %s: %w", metaLevel, err)
		}
	}
	return spec, true
}

// Copies returns the names of the streams that have the marks of another stream, sorted: nats stream copy copies the
// metadata, and so does a restore under another name. No broker reads such a stream.
func Copies(infos map[string]*jetstream.StreamInfo) []string {
	var copies []string
	for name, info := range infos {
		if isCopy(info.Config) {
			copies = append(copies, name)
		}
	}
	slices.Sort(copies)
	return copies
}

// CopyAdvice returns the commands that end the warnings about a copy: see Copies.
func CopyAdvice(stream string) string {
	return fmt.Sprintf("remove it with nats stream rm %s, or keep it under other metadata: nats stream edit %s "+
		"--metadata copy=yes", stream, stream)
}

// IsOf reports whether a stream has its own marks, with this prefix.
func IsOf(cfg jetstream.StreamConfig, prefix string) bool {
	return cfg.Metadata[metaKind] != "" && cfg.Metadata[metaPrefix] == prefix && !isCopy(cfg)
}

func isCopy(cfg jetstream.StreamConfig) bool {
	return cfg.Metadata[metaKind] != "" && cfg.Metadata[metaStream] != cfg.Name
}

// Subtract returns the elements of a that are not in b.
func Subtract(a, b []string) []string {
	subtrahend := make(map[string]bool, len(b))
	for _, s := range b {
		subtrahend[s] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return subtrahend[s] })
}

// sameMarks reports whether a stream has exactly the wanted marks, so that it may be changed. The secret may differ,
// because another instance may have written it.
func sameMarks(want, actual jetstream.StreamConfig) bool {
	marks := func(cfg jetstream.StreamConfig) map[string]string {
		marked := maps.Clone(cfg.Metadata)
		maps.DeleteFunc(marked, func(k, _ string) bool {
			return want.Metadata[k] == "" && k != metaLevel || k == metaSecret
		})
		return marked
	}
	return maps.Equal(marks(actual), marks(want))
}
