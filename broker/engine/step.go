package engine

import (
	"log/slog"
	"strconv"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/levels"
)

// plan holds the settings that determine the steps of a lane's messages.
type plan struct {
	*config.Config
	kind    laneKind
	delay   time.Duration // of the lane
	resumed leader.Time   // in the lane of a pause: when the pause was resumed, or entered a later state; otherwise zero
}

// jitter returns the time by which the wait after a refusal is longer. Attempts is the number of refusals. The jitter
// is at most the percentage of the wait that the settings have for the target, such as ~20% in DELAY_RETRY. All
// instances with the same settings compute the same jitter.
func (p plan) jitter(r message.Request, attempts int, wait time.Duration) time.Duration {
	limit := wait * time.Duration(p.RetryJitter.Lookup(r.Target, 0)) / 100
	return message.PartOf(limit, r.ID+"/"+strconv.Itoa(attempts))
}

// maxAttempts returns the number of refusals after which a message becomes a dead letter. The settings of its target
// determine this number, and the client may set a smaller number.
func (p plan) maxAttempts(r message.Request) int {
	return r.RefusalLimit(p.AttemptRules.Lookup(r.Target, p.Attempts))
}

// moment is the situation of a worker at the time of a decision.
type moment struct {
	now      leader.Time
	local    time.Time // the same moment by the clock of this host
	proven   bool      // the leader's clock has certainly reached now; if false, now is an estimate
	inMemory int       // number of messages in memory
	crowded  bool      // memory is short: see holdOrSpill
	pauses   *pause.List
	canPark  bool // the stream of paused messages may accept a message: see parking
}

// step is the next action on a message.
type step struct {
	kind      stepKind
	at        leader.Time      // of hold and backOff: the time of the next decision
	awaitsHop bool             // of hold: at that time, a hop will take the message from the lane
	level     levels.Level     // of hop and retry: the destination
	request   *message.Request // the request to store or, in the step pace, to apply; nil if it does not change
	problem   *message.Problem // of dead: the reason
	pause     string           // of park: the id of the pause
	line      *logLine         // the log line of the step; nil for none
	logKey    string           // the target for which log lines are rate-limited; if empty, they are limited by text
}

// stepKind is the kind of a step.
type stepKind int

// The steps.
const (
	hold        stepKind = iota // wait on the wheel until the next decision
	backOff                     // like hold, after a try that failed
	pace                        // wait for the message's reserved send time
	awaitKey                    // wait until the key of the message's seal is known
	awaitClose                  // wait while the pause of the target is closing
	hop                         // publish into a level
	retry                       // publish into a retry lane
	park                        // publish into the lane of a pause
	dead                        // publish into the stream of dead letters
	repeat                      // publish the same message again, under the same id
	check                       // read the message that a stream has: after the answer "duplicate", or see unverified
	renew                       // publish the same message under another id
	fire                        // deliver to the target
	arrive                      // remove from memory: the message has arrived, or its timer needs no step
	readCopy                    // of a timer: read its entry from a replica
	examine                     // of a timer: read its state or earlier entries from the leader
	claim                       // of a timer: store its firing
	decideAgain                 // of a timer: decide again, because its firing was stored or its entry was read
	remove                      // of a timer: remove its entries
)

// logLine is a line for the log.
type logLine struct {
	level slog.Level
	text  string
	args  []any
}
