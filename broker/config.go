package broker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/deliver"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// Defaults of Config. What the command offers as a setting is tested against them.
const (
	DefaultMaxDelay      = 366 * 24 * time.Hour
	DefaultAttempts      = 20
	DefaultRetry         = "1s 5s 30s"
	DefaultDedupWindow   = 30 * time.Second
	DefaultReplyTimeout  = 5 * time.Second
	DefaultShutdownGrace = 10 * time.Second
	DefaultHoldMessages  = 32 << 10
	DefaultHoldBytes     = 256 << 20
	MinHoldBytes         = 8 << 20

	// MaxMaxOwners bounds what every instance reads each second: one counter for each other.
	MaxMaxOwners = 64
	maxInstance  = 64
	maxPlace     = 8 << 10

	// maxDelayBound keeps every due time far inside what a nanosecond count and an RFC 3339 year can say.
	maxDelayBound = 10 * 366 * 24 * time.Hour
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
	// Attempts is how often a delivery may be refused before it becomes a dead letter. Defaults to DefaultAttempts.
	Attempts int

	// Secrets are what seals between lanes are made of, of at least message.MinSecret bytes each: the first seals, all are
	// believed. Without any, one is made when streams are provisioned, and kept in their metadata.
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

	// HoldBytes bounds what all lanes of the instance together keep in memory, whatever holds it: what was read ahead,
	// what is being published or waits for its target, and what the readers were sent. Each lane has a part for itself;
	// the rest is whoever's needs it. Beyond it the intake stores what is not due soon in a level, and lanes stop
	// reading. A lane may go over by one message. The process takes at most twice as much and some 48 MiB, where the
	// runtime knows its limit (see debug.SetMemoryLimit). Defaults to DefaultHoldBytes.
	HoldBytes int
	// HoldMessages bounds how many messages each lane keeps: the intake begins to store what is not due soon at so many,
	// and no lane reads on at twice as many. Defaults to DefaultHoldMessages.
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
	if len(c.Ladder.Levels()) == 0 {
		c.Ladder = levels.Default()
	}
	if len(c.RetryLadder.Levels()) == 0 {
		var err error
		if c.RetryLadder, err = levels.Parse(DefaultRetry); err != nil {
			return c, fmt.Errorf("bug: default retry ladder: %w", err)
		}
	}
	switch {
	case c.APIPrefix != "":
	case c.JSDomain != "":
		c.APIPrefix = "$JS." + c.JSDomain + ".API"
	default:
		c.APIPrefix = "$JS.API"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, c.check()
}

// policy says which requests are granted.
func (c Config) policy(names message.Names) message.Policy {
	return message.Policy{
		Names: names, Targets: c.Targets, HeaderTargets: c.HeaderTargets, MaxDelay: c.MaxDelay,
		Keys: message.NewKeys(c.Secrets, time.Time{}),
	}
}

// AnswersWithin is how much of the grace period a stop waits for answers; the rest is for the commit.
func AnswersWithin(grace time.Duration) time.Duration { return grace * 3 / 4 }

// Validate reports all problems at once, each wrapping ErrConfig.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}

func or[T int | time.Duration](field *T, value T) {
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
	var all []error
	refuse := func(format string, args ...any) {
		all = append(all, fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...)))
	}
	if _, err := message.NewNames(c.Prefix); err != nil {
		refuse("%v", err)
	}
	for i, secret := range c.Secrets {
		if len(secret) < message.MinSecret {
			refuse("secret %d of %d has %d bytes: at least %d", i+1, len(c.Secrets), len(secret), message.MinSecret)
		}
	}
	if c.Attempts < 1 {
		refuse("attempts %d: at least 1", c.Attempts)
	}
	if c.Replicas < 0 || c.Replicas > 5 {
		refuse("replicas %d: 0 (automatic) to 5", c.Replicas)
	}
	if c.DedupWindow < time.Second || c.DedupWindow > 24*time.Hour {
		refuse("dedup window %s: 1s to 24h", c.DedupWindow)
	}
	if c.MaxDelay < time.Second || c.MaxDelay > maxDelayBound {
		refuse("max delay %s: 1s to %s", c.MaxDelay, levels.FormatDuration(maxDelayBound))
	}
	if c.HoldMessages < 16 || c.HoldMessages > 1<<20 {
		refuse("hold messages %d: 16 to %d", c.HoldMessages, 1<<20)
	}
	if c.HoldBytes < MinHoldBytes {
		refuse("hold bytes %d: at least %d", c.HoldBytes, MinHoldBytes)
	}
	if longest := AnswersWithin(c.ShutdownGrace); c.ReplyTimeout < time.Millisecond || c.ReplyTimeout > longest {
		refuse("reply timeout %s: 1ms to %s, three quarters of the shutdown grace, or a clean stop would repeat what is being answered", c.ReplyTimeout, longest)
	}
	if c.MaxPending < 0 || c.MaxPendingBytes < 0 {
		refuse("max pending %d, max pending bytes %d: not negative", c.MaxPending, c.MaxPendingBytes)
	}
	if c.MaxOwners < 0 || c.MaxOwners > MaxMaxOwners {
		refuse("max owners %d: 0 (this instance alone) to %d", c.MaxOwners, MaxMaxOwners)
	}
	if c.MaxOwners > 0 && c.Leaser != nil {
		refuse("max owners %d and owners: set one of them", c.MaxOwners)
	}
	if len(c.Instance) > maxInstance {
		refuse("instance of %d bytes: at most %d", len(c.Instance), maxInstance)
	}
	if len(c.Place.Name) > maxPlace {
		refuse("place of %d bytes: at most %d", len(c.Place.Name), maxPlace)
	}
	if c.ShutdownGrace < 0 {
		refuse("shutdown grace %s: not negative", c.ShutdownGrace)
	}
	if c.JSDomain != "" && c.APIPrefix != "$JS."+c.JSDomain+".API" {
		refuse("JetStream domain %q and API prefix %q: set one of them", c.JSDomain, c.APIPrefix)
	}
	for _, pattern := range c.patterns() {
		if !message.ValidPattern(pattern) {
			refuse("target pattern %q: tokens separated by dots; * for one token, > for the rest", pattern)
		}
	}
	for _, err := range []error{c.Deliver.Validate(), c.Rates.Validate()} {
		if err != nil {
			refuse("%v", err)
		}
	}
	return errors.Join(all...)
}

// patterns are all target patterns of the configuration.
func (c Config) patterns() []string {
	all := slices.Concat(c.Targets, c.HeaderTargets)
	for _, r := range c.Deliver.Rules {
		all = append(all, r.Pattern)
	}
	for _, r := range c.Rates {
		all = append(all, r.Pattern)
	}
	return all
}
