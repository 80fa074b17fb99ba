package config

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
	"delaybroker/broker/stats/history"
	"delaybroker/levels"
)

// Defaults of Config.
const (
	DefaultMaxDelay      = 366 * 24 * time.Hour
	DefaultAttempts      = 20
	DefaultRetry         = "1s 5s 30s"
	DefaultDedupWindow   = 30 * time.Second
	DefaultReplyTimeout  = 5 * time.Second
	DefaultShutdownGrace = 10 * time.Second
	DefaultHoldMessages  = 32 << 10
	DefaultHoldBytes     = 256 << 20
	DefaultJournalBytes  = 1 << 30
	DefaultTimerHistory  = time.Minute
)

// Bounds of Config. Defaults are filled in before the bounds are checked.
const (
	maxAttempts                    = 1_000_000
	minDedupWindow, maxDedupWindow = time.Second, 24 * time.Hour
	minSlack                       = time.Millisecond
	maxSlack                       = 250 * time.Millisecond // a quarter of levels.MinLevel
	minReplyTimeout                = time.Millisecond
	minHoldMessages                = 16
	maxHoldMessages                = 1 << 20
	// MinHoldBytes is the minimum of Config.HoldBytes.
	MinHoldBytes = 8 << 20
	// minStorage has room for some ten streams.
	minStorage = 64 << 20
	// minJournalBytes has room for several batches of records.
	minJournalBytes = 1 << 20
	minJournal      = time.Minute
	// MaxReplicas is the limit of nats-server.
	MaxReplicas = 5
	maxInstance = 64
	maxPlace    = 8 << 10

	// With at most ten years, every due time is far inside the range of a nanosecond count and of an RFC 3339 year.
	minMaxDelay, maxMaxDelay = time.Second, 10 * 366 * 24 * time.Hour

	// A shorter grace period would cut off normal acknowledgements. A longer one is a mistake.
	minShutdownGrace, maxShutdownGrace = time.Second, time.Hour

	minTimerHistory, maxTimerHistory = time.Second, 366 * 24 * time.Hour
)

// Config is the configuration of a broker. The zero value of a field means its default. Config has no groups of fields,
// because documents and errors name each setting by its field.
type Config struct {
	// Prefix begins the broker's subjects and, in upper case, its stream names. Defaults to message.DefaultPrefix.
	Prefix string
	// Ladder has the levels that new messages take. The broker also serves the existing streams of other levels. Defaults
	// to levels.Default.
	Ladder levels.Ladder
	// IntakeDurations are further durations that clients may use in a subject like a level's, for example
	// delay.17m.orders.x. The intake stores these messages. A message with any other duration in such a subject, except
	// that of a level, gets no acknowledgement. Defaults to levels.PlainDurations, some 1,300 durations. When nats-server
	// creates a stream, it compares every pair of the stream's subjects, so tests have fewer durations.
	IntakeDurations []string
	// RetryLadder has the waits between delivery attempts: the first wait after the first refusal, and so on, and the
	// longest wait after each further refusal. Defaults to DefaultRetry.
	RetryLadder levels.Ladder
	// RetryRules override RetryLadder for the targets of a pattern.
	RetryRules RetryWaits
	// RetryJitter is the maximum extension of each wait for the targets of a pattern, in percent. Messages that were
	// refused together are then retried at different times. Defaults to none.
	RetryJitter RetryJitter
	// Attempts is the maximum number of refusals of a message, which then becomes a dead letter. Defaults to
	// DefaultAttempts.
	Attempts int
	// AttemptRules override Attempts for the targets of a pattern.
	AttemptRules RetryLimits

	// Secrets are the keys of the brokers' seals, of at least message.MinSecret bytes each. The broker seals with the
	// first key, and accepts the seals of all keys. If Secrets is empty, the broker reads the keys from the metadata of
	// the streams. If no stream has a key, provisioning generates one.
	Secrets []string

	// Provision allows the broker to create missing streams, and to change the subjects and the bounds of its streams,
	// and the metadata about seals.
	Provision bool
	// Replicas is the number of copies of new streams. Zero means three in a cluster with room for three, and otherwise
	// one.
	Replicas int
	// DedupWindow is the time for which a stream keeps the Nats-Msg-Id of each message, except the streams of the timers
	// and of the journal. An id takes about 110 bytes of the server's memory. Defaults to DefaultDedupWindow.
	DedupWindow time.Duration

	// MaxDelay is the longest time between acceptance and due time. It does not bound the times of a cron. Defaults to
	// DefaultMaxDelay; at most ten years.
	MaxDelay time.Duration
	// Targets are the subjects to which messages may be delivered; wildcards are allowed. Empty allows all subjects
	// outside the namespaces of the server and of the broker.
	Targets []string
	// HeaderTargets are the subjects that a Delay-Target header may name. Empty switches the header off.
	HeaderTargets []string
	// Deliver is the delivery mode of targets, for messages without a mode. Defaults to auto for all targets.
	Deliver deliver.Modes
	// Slack is the maximum time by which a delivery may be delayed, so that several deliveries are sent together.
	// Defaults to none.
	Slack time.Duration
	// ReplyTimeout is the timeout of the reply that a target must send in the delivery mode request. Defaults to
	// DefaultReplyTimeout.
	ReplyTimeout time.Duration
	// Rates bounds the number of messages that all instances together deliver to a target in a second. Defaults to no
	// bound.
	Rates deliver.Rates
	// RatesByKey bounds the number of messages with one Delay-Rate-Key in a second, from all instances and to all targets
	// of a pattern together. For these messages it replaces Rates. Defaults to no bound.
	RatesByKey deliver.Rates
	// InProgress bounds the deliveries to a target that have no result yet, and InProgressByKey those with one
	// Delay-Rate-Key, to all targets of a pattern together. For these messages it replaces InProgress. Neither applies to
	// the delivery mode core. Defaults to no bound.
	InProgress, InProgressByKey deliver.Maxima
	// MaxPending and MaxPendingBytes bound the contents of each level and of the intake. A full stream refuses clients'
	// messages. If the next level of a message is full, the broker moves the message to a shorter level, or leaves it in
	// its lane. Zero means no bound.
	MaxPending      int64
	MaxPendingBytes int64

	// Storage bounds the bytes of all streams together, of one copy. Each stream gets a part, and reserves it: see package
	// provision. It excludes MaxPendingBytes, and replaces JournalBytes. An account may require such a bound. Zero means
	// no bound.
	Storage int64

	// Journal is the time for which the broker keeps a record of the end of each message: see package journal. Zero means
	// no journal.
	Journal time.Duration
	// JournalBytes bounds the size of the records. At this size, the oldest records are removed early. Defaults to
	// DefaultJournalBytes.
	JournalBytes int64
	// Ended is called for each message that was delivered or became a dead letter. The loops of the lanes call Ended
	// concurrently and wait until it returns, so it must return immediately. May be nil.
	Ended func(Ended)
	// If Timers and Provision are true, the broker creates the stream of named timers. The broker serves an existing
	// stream in any case. With TimersOptional, the broker also starts if the stream cannot be created.
	Timers, TimersOptional bool
	// TimerHistory is the minimum time for which the outcome of a timer is kept, as the last message of its subject.
	// Defaults to DefaultTimerHistory; a negative value means no history.
	TimerHistory time.Duration

	// Calls are the requests that the control service (package timer/service) answers in addition to those about timers,
	// by the end of the request's subject, such as where.*: see service.Call.
	Calls map[string]func(ctx context.Context, rest string, body []byte) (any, error)
	// ReplyPrefixes are inbox prefixes to which the control service replies, in addition to _INBOX and _R_. The service
	// publishes there with the broker's permissions. So no program may treat messages on these subjects as requests.
	ReplyPrefixes []string

	// Schedules are the subjects that accept schedules in nats-server's format, and their targets. Defaults to none.
	Schedules message.ScheduleRules

	// HoldBytes bounds the messages that all lanes of the instance together have in memory, including those that the
	// server has sent and no lane has taken yet. Each lane has a reserved part, and the lanes that need more share the
	// rest. A lane without room stops reading. When more than half of its room is used, the intake moves messages that
	// are not due soon to a level. The process takes about 2 * HoldBytes + 48 MiB at most, if it has the memory limit
	// that Memory.GCSettings returns in the absence of other limits. Defaults to DefaultHoldBytes.
	HoldBytes int
	// HoldMessages is the number of messages in the intake's memory above which the intake moves messages that are not
	// due soon to a level. At twice this number in its memory, any lane stops reading. Defaults to DefaultHoldMessages.
	HoldMessages int

	// JSDomain selects the JetStream of another domain, behind a leaf node. APIPrefix selects the JetStream of another
	// account, through an import. Set at most one of the two.
	JSDomain  string
	APIPrefix string

	// ShutdownGrace is the time that Run may take to stop: see AnswerTimeout. Defaults to DefaultShutdownGrace.
	ShutdownGrace time.Duration
	// Instance is the operator's name for this instance, or empty. A name must be unique, and the same after a restart.
	// After a crash, an instance with a name or a Place is active again within a second.
	Instance string
	// Place is the location of this instance, or empty. The broker uses Place only if Instance is empty.
	Place Place
	// Leaser decides whether this instance is active. If Leaser is nil, the instances of the broker choose the active one
	// among themselves: see package lease. Tests set it.
	Leaser lease.Leaser
	// Version is the program's version, for operators. It may be empty.
	Version string
	// Format is the newest format of messages that this instance reads. Tests set it, as if the program had
	// another one. Defaults to message.Format.
	Format int
	// History records the activity of this instance, every ten seconds. Nil records nothing.
	History *history.Book
	// Log receives messages for the operator. By default they are discarded.
	Log *slog.Logger
}

// Place is a location where at most one instance should run. The broker treats an instance that starts at a Place as a
// restart of the previous instance at that Place.
type Place struct {
	Name   string // such as the host name and the listen address
	Locked bool   // a lock guarantees that no other instance runs there
}

// Complete fills in the defaults, and checks the result. Its error is a [FieldErrors] with all problems.
func (c Config) Complete() (Config, error) {
	setDefault(&c.Prefix, message.DefaultPrefix)
	setDefault(&c.Attempts, DefaultAttempts)
	setDefault(&c.Format, message.Format)
	setDefault(&c.DedupWindow, DefaultDedupWindow)
	setDefault(&c.MaxDelay, DefaultMaxDelay)
	setDefault(&c.ReplyTimeout, DefaultReplyTimeout)
	setDefault(&c.ShutdownGrace, DefaultShutdownGrace)
	setDefault(&c.HoldMessages, DefaultHoldMessages)
	setDefault(&c.HoldBytes, DefaultHoldBytes)
	setDefault(&c.JournalBytes, DefaultJournalBytes)
	setDefault(&c.TimerHistory, DefaultTimerHistory)
	if len(c.Ladder.Levels()) == 0 {
		c.Ladder = levels.Default()
	}
	if c.IntakeDurations == nil {
		c.IntakeDurations = levels.PlainDurations()
	}
	if len(c.RetryLadder.Levels()) == 0 {
		c.RetryLadder, _ = levels.Parse(DefaultRetry) // cannot fail
	}
	setDefault(&c.APIPrefix, APIPrefix(c.JSDomain))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, c.check()
}

// Policy returns the policy by which requests are read and checked.
func (c Config) Policy(names message.Names) message.Policy {
	return message.Policy{
		Names: names, Targets: c.Targets, HeaderTargets: c.HeaderTargets, MaxDelay: c.MaxDelay,
		Keys:     message.NewKeys(c.Secrets),
		Format:   c.Format,
		Attempts: func(target string) int { return c.AttemptRules.Lookup(target, c.Attempts) },
	}
}

// APIPrefix returns the prefix of the JetStream API of a domain or, for an empty domain, of the connection's account.
func APIPrefix(domain string) string {
	if domain == "" {
		return "$JS.API"
	}
	return "$JS." + domain + ".API"
}

// AnswerTimeout returns the part of the grace period in which a stopping instance waits for acknowledgements and
// replies. In the remaining time, the instance purges the delivered messages.
func AnswerTimeout(grace time.Duration) time.Duration { return grace * 3 / 4 }

func setDefault[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }

// Copies returns the number of copies that a new stream should have. In a cluster without room for three copies, the
// broker creates one, unless Replicas is set.
func (c Config) Copies(clustered bool) int {
	switch {
	case c.Replicas > 0:
		return c.Replicas
	case clustered:
		return 3
	}
	return 1
}
