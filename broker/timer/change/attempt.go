package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

const (
	// publishTimeout is the timeout of a publish.
	publishTimeout = time.Second
	// retryInterval is the wait before a read or a publish is repeated.
	retryInterval = 50 * time.Millisecond
)

// rules define one kind of change: the entry to publish, and the meaning of the stream's answer.
type rules interface {
	// Decide returns the next step, given Attempt.State.
	Decide() timer.Next
	// Entry returns the message to publish in place of a generation. An error ends the attempt, except for errNoTime.
	Entry(ctx context.Context, generation uint64) (*nats.Msg, error)
	// Judge returns the meaning of the stream's answer to the publish of Entry. An error ends the attempt.
	Judge(ctx context.Context, generation uint64, reply jsapi.Reply) (Meaning, error)
	// Decisive reports whether an entry shows the outcome of the attempt, even if it is not the last one any more.
	Decisive(e entry.Entry) bool
}

// Meaning is the meaning of the stream's answer to a publish.
type Meaning int

const (
	Final    Meaning = iota // the outcome is certain
	Doubtful                // the entry may be stored, or be stored later
	Replaced                // the entry is not stored: another entry is the last one, according to the leader
	Retry                   // the entry is not stored, and may be published again
)

// Attempt repeats a change of a timer's subject until the outcome is certain. It reads the last entry, publishes in
// place of that entry, and reads again if the stream's answer does not show the outcome.
type Attempt struct {
	Timers      *Timers
	Subject     string
	Generation  uint64        // the generation to change; zero for any
	ReadTimeout time.Duration // the timeout of one read
	Elected     bool          // read only after a leader has shown that a majority follows it

	State timer.State // the state that the latest read returned
	Doubt timer.Doubt // the publishes that the stream has not answered

	mayBeStored bool   // a publish was not answered, or was refused by a leader that may be deposed
	expected    uint64 // the generation that the latest such publish expected
}

// Run carries out the change until its outcome is certain, or ctx ends. An error of a rule ends the attempt. A missing
// stream ends it with an *Error, unless an earlier publish was not answered. If ctx ends after a publish that may be
// stored, Run returns nil; otherwise it returns the latest failure, or nil if there was none. If publishFirst is set,
// the first publish comes before the first read.
func (a *Attempt) Run(ctx context.Context, rules rules, publishFirst bool) error {
	if publishFirst {
		if done, err := a.publish(ctx, rules, a.Generation); done {
			return err
		}
	}
	var problem error
	for ctx.Err() == nil {
		next := timer.ReadAgain
		if err := a.read(ctx, rules); err != nil {
			if problem == nil || ctx.Err() == nil { // keep an earlier problem: the end of ctx explains nothing
				problem = fmt.Errorf("read the last entry of %s: %w", a.Subject, err)
			}
			if errors.Is(err, jetstream.ErrStreamNotFound) && !a.Doubt.Unanswered {
				return NoStream()
			}
		} else {
			problem, next = nil, rules.Decide()
		}
		switch next {
		case timer.Reply:
			return nil
		case timer.Publish:
			done, err := a.publish(ctx, rules, a.State.Sequence)
			if done {
				return err
			}
			problem = err
		default:
			WaitToRetry(ctx)
		}
	}
	if a.mayBeStored {
		return nil
	}
	return problem
}

// publish publishes in place of a generation. If done is true, the attempt ends with err. If done is false and err is
// not nil, nothing was published.
func (a *Attempt) publish(ctx context.Context, rules rules, generation uint64) (done bool, err error) {
	m, err := rules.Entry(ctx, generation)
	if errors.Is(err, errNoTime) {
		WaitToRetry(ctx)
		return false, err
	}
	if err != nil {
		return true, err
	}
	publishing, cancel := context.WithTimeout(ctx, publishTimeout)
	reply := a.Timers.Publish(publishing, m)
	cancel()
	meaning, err := rules.Judge(ctx, generation, reply)
	if err != nil || meaning == Final {
		return true, err
	}
	repeated := a.mayBeStored && a.expected == generation
	if meaning == Doubtful {
		a.Doubt.Add(generation)
	}
	if meaning == Doubtful || meaning == Replaced {
		a.mayBeStored, a.expected = true, generation
	}
	if meaning != Replaced || repeated { // a leader that refuses twice may be deposed: wait for its successor
		WaitToRetry(ctx)
	}
	return false, nil
}

// read reads the last entry of the subject from the leader. If another client has published over a decisive entry, read
// reads the decisive entry, which directly follows the generation that it replaced.
func (a *Attempt) read(ctx context.Context, rules rules) (err error) {
	ctx, cancel := context.WithTimeout(ctx, a.ReadTimeout)
	defer cancel()
	entries := a.Timers.Entries()
	a.State, err = entries.LastEntry(ctx, a.Subject, a.Generation, a.Elected)
	generation := a.Generation
	if a.mayBeStored {
		generation = a.expected
	}
	if err != nil || !a.mayBeStored && generation == 0 || a.State.NoEntry || a.State.Sequence <= generation ||
		rules.Decisive(a.State.Entry) {
		return err
	}
	m, ok, err := entries.Next(ctx, a.Subject, generation+1)
	if !ok {
		return err
	}
	if next := entries.State(m); rules.Decisive(next.Entry) {
		a.State = next
	}
	return nil
}

// WaitToRetry waits for retryInterval, or until ctx ends.
func WaitToRetry(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryInterval):
	}
}
