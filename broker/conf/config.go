package conf

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"delaybroker/broker/attempts"
	"delaybroker/broker/deliver"
	"delaybroker/broker/history"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
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

// Bounds of Config. What was left open is filled in before they are checked.
const (
	maxAttempts                    = 1_000_000
	minDedupWindow, maxDedupWindow = time.Second, 24 * time.Hour
	minReplyTimeout                = time.Millisecond
	minHoldMessages                = 16
	maxHoldMessages                = 1 << 20
	// MinHoldBytes is the least that lanes can work with.
	MinHoldBytes = 8 << 20
	// minJournalBytes has room for a second of batches at least.
	minJournalBytes = 1 << 20
	minJournal      = time.Minute
	// MaxReplicas is nats-server's.
	MaxReplicas = 5
	// MostOwners bounds what every instance reads each second: one counter for each other.
	MostOwners  = 64
	maxInstance = 64
	maxPlace    = 8 << 10

	// Ten years keep every due time far inside what a nanosecond count and an RFC 3339 year can say.
	minMaxDelay, maxMaxDelay = time.Second, 10 * 366 * 24 * time.Hour

	// Less grace than a second breaks off healthy acknowledgements; more than an hour is a mistake.
	minShutdownGrace, maxShutdownGrace = time.Second, time.Hour

	minTimerHistory, maxTimerHistory = time.Second, 366 * 24 * time.Hour
)

// Config says how a broker works. The zero value of every field is its default. It is flat, because each field is one
// setting: it has its name in all documents, and a problem with it is told by that name.
type Config struct {
	// Prefix is the root of all subjects and, in upper case, the stem of all stream names.
	// Defaults to message.DefaultPrefix.
	Prefix string
	// Ladder is the levels that new messages take. Streams of other levels are served until they are empty.
	// Defaults to levels.Default.
	Ladder levels.Ladder
	// RetryLadder is the waits between attempts to deliver: the first after the first refusal, and so on; the last for
	// all that follow. Defaults to DefaultRetry.
	RetryLadder levels.Ladder
	// RetryRules are other waits for the targets of a pattern.
	RetryRules attempts.Waits
	// Attempts is how often a delivery may be refused before it becomes a dead letter. Defaults to DefaultAttempts.
	Attempts int
	// AttemptRules are other numbers for the targets of a pattern.
	AttemptRules attempts.Limits

	// Secrets are what seals between lanes are made of, of at least message.MinSecret bytes each: the first seals, all
	// are believed. Without any, one is made when streams are provisioned, and kept in their metadata.
	Secrets []string

	// Provision allows to create missing streams and to change which subjects ours listen on.
	Provision bool
	// Replicas is the number of copies of new streams. Zero means three in a cluster and one on a single server.
	Replicas int
	// DedupWindow is how long the streams remember a Nats-Msg-Id, at about 110 bytes of server memory each.
	// Defaults to DefaultDedupWindow.
	DedupWindow time.Duration

	// MaxDelay is the longest time between acceptance and due. Defaults to DefaultMaxDelay; at most ten years.
	MaxDelay time.Duration
	// Targets are the subjects, wildcards allowed, that may be delivered to. Empty allows all outside the namespaces of
	// the server and of the broker.
	Targets []string
	// HeaderTargets are the subjects that a Delay-Target header may name. Empty switches the header off.
	HeaderTargets []string
	// Deliver says how targets are reached where a message does not. Defaults to auto everywhere.
	Deliver deliver.Modes
	// ReplyTimeout is how long a service may take to reply in mode request. Defaults to DefaultReplyTimeout.
	ReplyTimeout time.Duration
	// Rates bounds how many messages a second a target gets from this instance. Defaults to no bound.
	Rates deliver.Rates
	// MaxPending and MaxPendingBytes bound what each level and the intake hold: beyond it clients are refused, and
	// messages on their way take a smaller level. Zero is no bound.
	MaxPending      int64
	MaxPendingBytes int64

	// Journal is how long a record of each delivery is kept: see package journal. Zero keeps none.
	Journal time.Duration
	// JournalBytes bounds the records: beyond it, the oldest go before their time. Defaults to DefaultJournalBytes.
	JournalBytes int64
	// Ended is called for each message that was delivered or became a dead letter, by the loops of the lanes, at the same
	// time. They wait for it, so it has to return at once. May be nil.
	Ended func(Ended)
	// Timers creates the stream of named timers. One that exists is served in any case. With TimersSpare a start goes on
	// where it cannot be made.
	Timers, TimersSpare bool
	// TimerHistory is how long the last entry of a timer's subject tells what became of it. Defaults to
	// DefaultTimerHistory; below zero is none.
	TimerHistory time.Duration

	// Calls are what the control service answers besides requests about timers: see control.Call.
	Calls map[string]func(ctx context.Context, rest string, body []byte) (any, error)
	// ReplyPrefixes are where the control service answers, besides _INBOX and _R_: the inbox prefixes of those who ask. It
	// publishes there with the broker's rights, so nobody may take what comes there for a request.
	ReplyPrefixes []string

	// Schedules are where schedules are asked for in the dialect of nats-server, and for which targets: see package
	// dialect. Empty is nowhere.
	Schedules message.Grounds

	// HoldBytes bounds what all lanes of the instance together keep in memory, whatever holds it: what was read ahead,
	// what is being published or waits for its target, and what the readers were sent. Each lane has a part for itself;
	// the rest is whoever's needs it. Beyond it the intake stores what is not due soon in a level, and lanes stop
	// reading. A lane may go over by one message. The process takes at most twice as much and some 48 MiB, where the
	// runtime knows its limit (see debug.SetMemoryLimit). Defaults to DefaultHoldBytes.
	HoldBytes int
	// HoldMessages bounds how many messages each lane keeps: the intake begins to store what is not due soon at so
	// many, and no lane reads on at twice as many. Defaults to DefaultHoldMessages.
	HoldMessages int

	// JSDomain and APIPrefix reach JetStream behind a leaf node or an import; at most one is set.
	JSDomain  string
	APIPrefix string

	// ShutdownGrace is how long a stop waits for outstanding acknowledgements. Defaults to DefaultShutdownGrace.
	ShutdownGrace time.Duration
	// MaxOwners is how many of the instances that are there own lanes; others stand by. Zero means that this is the
	// only instance there will be.
	MaxOwners int
	// Instance is what the operator calls this instance: the same after a restart, and no other instance. With it, or
	// with a Place, an instance that crashed resumes its lanes at once instead of after five seconds. It may be empty.
	Instance string
	// Place is where this instance runs, used when Instance is empty. It may be empty, too.
	Place Place
	// Leaser decides which lanes this instance works, in place of MaxOwners. Defaults to all of them.
	Leaser lease.Leaser
	// Version is that of the program, for operators. It may be empty.
	Version string
	// Format is the newest format of messages that this instance reads. Tests set it, to stand for an older version.
	// Defaults to message.Format.
	Format int
	// History is where Run notes what this instance does, every ten seconds. Nil notes nothing.
	History *history.Book
	// Log receives what an operator should know. Defaults to nowhere.
	Log *slog.Logger
}

// Place is where an instance runs, and no other can: what comes back there is the same instance.
type Place struct {
	Name string // such as the host and an address it listens on
	// Locked says that nobody else can be there, not even by mistake, as in a directory that is locked.
	Locked bool
}

// Complete fills what was left open, and checks the result. Its error is a [FieldErrors].
func (c Config) Complete() (Config, error) {
	or(&c.Prefix, message.DefaultPrefix)
	or(&c.Attempts, DefaultAttempts)
	or(&c.Format, message.Format)
	or(&c.DedupWindow, DefaultDedupWindow)
	or(&c.MaxDelay, DefaultMaxDelay)
	or(&c.ReplyTimeout, DefaultReplyTimeout)
	or(&c.ShutdownGrace, DefaultShutdownGrace)
	or(&c.HoldMessages, DefaultHoldMessages)
	or(&c.HoldBytes, DefaultHoldBytes)
	or(&c.JournalBytes, DefaultJournalBytes)
	or(&c.TimerHistory, DefaultTimerHistory)
	if len(c.Ladder.Levels()) == 0 {
		c.Ladder = levels.Default()
	}
	if len(c.RetryLadder.Levels()) == 0 {
		var err error
		if c.RetryLadder, err = levels.Parse(DefaultRetry); err != nil {
			return c, fmt.Errorf("bug: default retry ladder: %w", err)
		}
	}
	or(&c.APIPrefix, APIPrefix(c.JSDomain))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, c.check()
}

// Policy says which requests are granted.
func (c Config) Policy(names message.Names) message.Policy {
	return message.Policy{
		Names: names, Targets: c.Targets, HeaderTargets: c.HeaderTargets, MaxDelay: c.MaxDelay,
		Keys:     message.NewKeys(c.Secrets, time.Time{}),
		Format:   c.Format,
		Attempts: func(target string) int { return c.AttemptRules.For(target, c.Attempts) },
	}
}

// APIPrefix is the root of the JetStream API of a domain, or of the own account when there is none.
func APIPrefix(domain string) string {
	if domain == "" {
		return "$JS.API"
	}
	return "$JS." + domain + ".API"
}

// AnswersWithin is how much of the grace period a stop waits for answers; the rest is for the commit.
func AnswersWithin(grace time.Duration) time.Duration { return grace * 3 / 4 }

// Validate reports all problems at once, as [FieldErrors].
func (c Config) Validate() error {
	_, err := c.Complete()
	return err
}

// or fills in a field that was left open.
func or[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }

// Copies is the number of copies of a new stream.
func (c Config) Copies(clustered bool) int {
	switch {
	case c.Replicas > 0:
		return c.Replicas
	case clustered:
		return 3
	}
	return 1
}
