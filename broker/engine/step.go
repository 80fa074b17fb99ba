package engine

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/levels"
)

// plan holds the settings by which the steps of a lane's messages are decided.
type plan struct {
	kind     laneKind
	delay    time.Duration // the time that every message waits in the lane
	slack    time.Duration // see config.Config
	ladder   levels.Ladder
	retries  levels.Ladder
	attempts int // refusals before a dead letter

	limits deliver.Limits
	homes  []levels.Level // the levels with turns: see rates.go

	retryRules   config.RetryWaits // before retries
	retryJitter  config.RetryJitter
	attemptRules config.RetryLimits

	resumed leader.Time // in the lane of a pause: when its messages may first be sent; otherwise zero
}

// planOf returns the plan of a lane.
func planOf(cfg config.Config, kind laneKind, delay time.Duration) plan {
	return plan{
		limits: deliver.Limits{ByTarget: cfg.Rates, ByKey: cfg.RatesByKey}, homes: homesOf(cfg.Ladder),
		kind: kind, delay: delay, slack: cfg.Slack, ladder: cfg.Ladder, retries: cfg.RetryLadder,
		retryRules:  cfg.RetryRules,
		retryJitter: cfg.RetryJitter, attempts: cfg.Attempts, attemptRules: cfg.AttemptRules,
	}
}

// waits returns the waits between the attempts to deliver to a target.
func (p plan) waits(target string) []levels.Level {
	return p.retryRules.For(target, p.retries).Levels()
}

// jitter returns the extra wait after a refusal of a message: less than the percentage of its target. Every instance
// computes the same value, so copies of a message come again at one time.
func (p plan) jitter(r message.Request, failed int, wait time.Duration) time.Duration {
	limit := wait * time.Duration(p.retryJitter.For(r.Target, 0)) / 100
	if limit <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, r.ID, "/", failed) // a hash's Write never fails
	return time.Duration(h.Sum64() % uint64(limit)).Truncate(time.Millisecond)
}

// allowed returns the number of refusals after which a message becomes a dead letter: by the settings of its target, or
// fewer if the client set fewer.
func (p plan) allowed(r message.Request) int {
	n := p.attemptRules.For(r.Target, p.attempts)
	if r.MaxAttempts > 0 {
		n = min(n, r.MaxAttempts)
	}
	return n
}

// moment is the situation in which a worker decides.
type moment struct {
	now      leader.Time
	local    time.Time // the same moment by our clock
	proven   bool      // the leader's clock has certainly reached now; otherwise now is an estimate
	inFlight int       // messages in memory
	crowded  bool      // many messages are in memory already: see holdOrSpill
	pauses   *pause.List
	parks    bool                    // the stream of paused messages answers, as far as is known: see parking
	works    func(levels.Level) bool // whether this instance works the lane of a level now
}

// step is the next thing to do with a message.
type step struct {
	kind   stepKind
	at     leader.Time      // hold, backOff: until then
	leaves bool             // hold: to be moved then
	level  levels.Level     // hop, retry: the destination
	as     *message.Request // retry, dead, pace: the message's request from then on
	why    *message.Problem // dead
	pause  string           // park: the pause to wait for
	note   *note            // to be logged, at a limited rate
	about  string           // the target by which the log limits the note; empty to limit it by its text
}

// stepKind is a closed set: a new feature is a new decision, not a new loop.
type stepKind int

// The steps.
const (
	hold     stepKind = iota // on the wheel until then; then the next step is decided
	backOff                  // as hold; the wait grows each time
	pace                     // wait for a turn at the target's rate
	awaitKey                 // wait until its seal can be judged
	halt                     // wait, for a short time, until a closing pause is over
	hop                      // into a level
	retry                    // into a retry lane
	park                     // into the lane of a pause
	dead                     // to the dead letters
	repeat                   // publish the same message again
	check                    // read the copy that a stream reports
	renew                    // publish the same message under another id
	fire                     // to the target
	arrive                   // it has arrived elsewhere: remove it from memory
	examine                  // of a timer: read its state, or whether the rounds before are settled
	claim                    // of a timer: store that it fires
	claimed                  // of a timer: its firing is stored
	remove                   // of a timer: remove its entry
)

// note is something to log.
type note struct {
	level slog.Level
	text  string
	args  []any
}
