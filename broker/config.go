package broker

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/attempts"
	"delaybroker/broker/deliver"
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

	maxTimerHistory = 366 * 24 * time.Hour
)

// Links are the broker's connections to NATS. They may be one and the same; apart, each can have a user with the rights
// it needs and nothing more, and a large read delays no answer. Answers come below the inbox prefix of each connection:
// see nats.CustomInboxPrefix.
type Links struct {
	Read    *nats.Conn // pulls from the lanes
	Write   *nats.Conn // publishes into the lanes and the dead letters
	Deliver *nats.Conn // publishes to the targets
	Control *nats.Conn // asks the JetStream API: streams, purges, clocks
}

// inboxOf is the prefix of a connection's inboxes, without the final dot.
func inboxOf(nc *nats.Conn) string {
	return cmp.Or(nc.Opts.InboxPrefix, strings.TrimSuffix(nats.InboxPrefix, "."))
}

// Config says how a broker works. The zero value of every field is its default.
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
	// Timers creates the stream of named timers. One that exists is served in any case.
	Timers bool
	// TimerHistory is how long the last entry of a timer's subject tells what became of it. Defaults to
	// DefaultTimerHistory; below zero is none.
	TimerHistory time.Duration

	// ReplyPrefixes are where the control service answers, besides _INBOX and _R_: the inbox prefixes of those who ask. It
	// publishes there with the broker's rights, so nobody may take what comes there for a request.
	ReplyPrefixes []string

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
	// Log receives what an operator should know. Defaults to nowhere.
	Log *slog.Logger
}

// Place is where an instance runs, and no other can: what comes back there is the same instance.
type Place struct {
	Name string // such as the host and an address it listens on
	// Locked says that nobody else can be there, not even by mistake, as in a directory that is locked.
	Locked bool
}

// withDefaults fills what was left open.
func (c Config) withDefaults() (Config, error) {
	orString(&c.Prefix, message.DefaultPrefix)
	or(&c.Attempts, DefaultAttempts)
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
	orString(&c.APIPrefix, APIPrefix(c.JSDomain))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, c.check()
}

// policy says which requests are granted.
func (c Config) policy(names message.Names) message.Policy {
	return message.Policy{
		Names: names, Targets: c.Targets, HeaderTargets: c.HeaderTargets, MaxDelay: c.MaxDelay,
		Keys: message.NewKeys(c.Secrets, time.Time{}), Attempts: c.attempts,
	}
}

// attempts is how often a target may refuse a message.
func (c Config) attempts(target string) int { return c.AttemptRules.For(target, c.Attempts) }

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
	_, err := c.withDefaults()
	return err
}

func or[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

func orString(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// check reports what is out of bounds once nothing is left open.
func (c Config) check() error {
	var all FieldErrors
	c.checkIdentity(&all)
	c.checkRanges(&all)
	c.checkRules(&all)
	if len(all) == 0 {
		return nil
	}
	return all
}

// checkIdentity looks at what names the broker, its subjects and its server, and at its secrets.
func (c Config) checkIdentity(all *FieldErrors) {
	refuse := all.refuse
	if _, err := message.NewNames(c.Prefix); err != nil {
		refuse("Prefix", c.Prefix, "%v", err)
	}
	for i, secret := range c.Secrets {
		if len(secret) < message.MinSecret {
			refuse("Secrets", "",
				"number %d of %d has %d bytes; want at least %d: take the output of openssl rand -hex 16",
				i+1, len(c.Secrets), len(secret), message.MinSecret)
		}
	}
	if c.MaxOwners > 0 && c.Leaser != nil {
		refuse("MaxOwners", c.MaxOwners, "set together with Leaser; leave one of them out")
	}
	if len(c.Instance) > maxInstance {
		refuse("Instance", c.Instance, "want at most %d bytes", maxInstance)
	}
	if len(c.Place.Name) > maxPlace {
		refuse("Place", fmt.Sprintf("%.60s…", c.Place.Name), "want at most %d bytes", maxPlace)
	}
	switch {
	case strings.ContainsAny(c.JSDomain, ".*> \t\r\n"):
		refuse("JSDomain", c.JSDomain, "want one token: no dots, wildcards or spaces")
	case c.JSDomain != "" && c.APIPrefix != APIPrefix(c.JSDomain):
		refuse("JSDomain", c.JSDomain, "set together with APIPrefix %q; leave one of them out", c.APIPrefix)
	}
}

// checkReplyPrefixes refuses subjects on which somebody acts.
func (c Config) checkReplyPrefixes(all *FieldErrors) {
	var roots []string
	if names, err := message.NewNames(c.Prefix); err == nil {
		roots = names.Roots()
	}
	for _, prefix := range c.ReplyPrefixes {
		first, _, _ := strings.Cut(prefix, ".")
		if !message.ValidPattern(prefix) || strings.ContainsAny(prefix, "*>") || first[0] == '$' ||
			slices.Contains(roots, first) {
			all.refuse("ReplyPrefixes", prefix,
				"reply prefix %q: want an inbox prefix such as _INBOX_orders, without wildcards, and nothing below $ or the "+
					"broker's own subjects", prefix)
		}
	}
}

// checkRanges looks at what has a least and a most.
func (c Config) checkRanges(all *FieldErrors) {
	if c.HoldBytes < MinHoldBytes {
		all.refuse("HoldBytes", c.HoldBytes, "want at least %d", MinHoldBytes)
	}
	if c.MaxPending < 0 {
		all.refuse("MaxPending", c.MaxPending, "want a whole number from 1, or 0 for no bound")
	}
	if c.MaxPendingBytes < 0 {
		all.refuse("MaxPendingBytes", c.MaxPendingBytes, "want a whole number from 1, or 0 for no bound")
	}
	if c.TimerHistory > 0 && (c.TimerHistory < time.Second || c.TimerHistory > maxTimerHistory) {
		all.refuse("TimerHistory", c.TimerHistory, "want %s to %s", levels.FormatDuration(time.Second),
			levels.FormatDuration(maxTimerHistory))
	}
	for _, f := range []struct {
		field       string
		value       int
		least, most int
		orZero      bool // which means something of its own
	}{
		{"Attempts", c.Attempts, 1, maxAttempts, false},
		{"Replicas", c.Replicas, 1, MaxReplicas, true},
		{"MaxOwners", c.MaxOwners, 1, MostOwners, true},
		{"HoldMessages", c.HoldMessages, minHoldMessages, maxHoldMessages, false},
	} {
		if (f.value < f.least || f.value > f.most) && !(f.orZero && f.value == 0) {
			all.refuse(f.field, f.value, "want a whole number from %d to %d", f.least, f.most)
		}
	}
	for _, f := range []struct {
		field              string
		value, least, most time.Duration
	}{
		{"DedupWindow", c.DedupWindow, minDedupWindow, maxDedupWindow},
		{"MaxDelay", c.MaxDelay, minMaxDelay, maxMaxDelay},
		{"ReplyTimeout", c.ReplyTimeout, minReplyTimeout, AnswersWithin(maxShutdownGrace)},
		{"ShutdownGrace", c.ShutdownGrace, minShutdownGrace, maxShutdownGrace},
	} {
		if f.value < f.least || f.value > f.most {
			all.refuse(f.field, f.value, "want %s to %s", levels.FormatDuration(f.least), levels.FormatDuration(f.most))
		}
	}
	if c.Journal != 0 && (c.Journal < minJournal || c.Journal > maxMaxDelay) {
		all.refuse("Journal", c.Journal, "want %s to %s",
			levels.FormatDuration(minJournal), levels.FormatDuration(maxMaxDelay))
	}
	if c.JournalBytes < minJournalBytes {
		all.refuse("JournalBytes", c.JournalBytes, "want at least %d", minJournalBytes)
	}
	longest := AnswersWithin(c.ShutdownGrace)
	if !all.Have("ReplyTimeout") && !all.Have("ShutdownGrace") && c.ReplyTimeout > longest {
		all.refuse("ReplyTimeout", c.ReplyTimeout,
			"want at most %s, three quarters of ShutdownGrace, or a clean stop would repeat what is being answered",
			levels.FormatDuration(longest))
		(*all)[len(*all)-1].Other = "ShutdownGrace"
	}
}

// checkRules reports rules by target that match nothing, or whose values are out of bounds.
func (c Config) checkRules(all *FieldErrors) {
	for _, p := range c.patterns() {
		if !message.ValidPattern(p.pattern) {
			all.refuse(p.field, p.pattern,
				"target pattern %q: tokens separated by dots; * for one token, > for the rest", p.pattern)
		}
	}
	if err := c.Deliver.Validate(); err != nil {
		all.refuse("Deliver", "", "%v", err)
	}
	if err := c.Rates.Validate(); err != nil {
		all.refuse("Rates", "", "%v", err)
	}
	c.checkReplyPrefixes(all)
	for _, r := range c.AttemptRules {
		if r.Attempts < 1 || r.Attempts > maxAttempts {
			all.refuse("AttemptRules", fmt.Sprintf("%s=%d", r.Pattern, r.Attempts),
				"attempts %d for %s: want a whole number from 1 to %d", r.Attempts, r.Pattern, maxAttempts)
		}
	}
	for _, r := range c.RetryRules {
		if len(r.Ladder.Levels()) == 0 {
			all.refuse("RetryRules", r.Pattern, "no waits for %s: want one at least", r.Pattern)
		}
	}
	if _, err := c.RetryRules.Lanes(c.RetryLadder); err != nil {
		all.refuse("RetryRules", "", "the waits of all targets together are the retry lanes: %v", err)
	}
}

// fieldPattern is a target pattern and the field that has it.
type fieldPattern struct{ field, pattern string }

// patterns are all target patterns of the configuration.
func (c Config) patterns() []fieldPattern {
	var all []fieldPattern
	for _, pattern := range c.Targets {
		all = append(all, fieldPattern{"Targets", pattern})
	}
	for _, pattern := range c.HeaderTargets {
		all = append(all, fieldPattern{"HeaderTargets", pattern})
	}
	for _, r := range c.Deliver.Rules {
		all = append(all, fieldPattern{"Deliver", r.Pattern})
	}
	for _, r := range c.Rates {
		all = append(all, fieldPattern{"Rates", r.Pattern})
	}
	for _, r := range c.AttemptRules {
		all = append(all, fieldPattern{"AttemptRules", r.Pattern})
	}
	for _, r := range c.RetryRules {
		all = append(all, fieldPattern{"RetryRules", r.Pattern})
	}
	return all
}
