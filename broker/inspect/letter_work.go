package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"delaybroker/broker/deadletter"
)

// letterWorkers is the maximum number of concurrent operations on letters.
const letterWorkers = 32

// The outcomes of a letter that Work did not change.
const (
	LetterLeft = "left" // the letter cannot be resent with this change: see advice
	LetterGone = "gone" // another client has removed the letter
)

// advice has the recommended action for each error that leaves a letter unchanged.
var advice = []struct {
	err    error
	action string
}{
	{deadletter.ErrMarker, "the timer is still in the timers' stream and fires from there; if delaybroker doctor " +
		"reports timers whose secret the brokers do not have, add that secret to DELAY_SECRET; then run delaybroker dead rm"},
	{deadletter.ErrUnproven, "see delaybroker dead show; --unsealed delivers the message"},
	{deadletter.ErrNoTarget, "name one with --to"},
	{deadletter.ErrForbidden, "allow this target, or name another with --to"},
	{deadletter.ErrNoTime, "--now delivers it immediately, --header Delay-Until=TIME at that time"},
	{deadletter.ErrExpired, "--drop-expiry delivers it without its expiry"},
	{deadletter.ErrEdit, "the message would have too many headers, expire before it is due, or ask for more attempts " +
		"than its target allows"},
	{deadletter.ErrTooLarge, "raise max_payload and the streams' max_msg_size"},
	{deadletter.ErrUnreadable, "see delaybroker dead show"},
}

// LetterWork is one operation on many letters.
type LetterWork struct {
	Query   deadletter.Query
	Keep    func(l deadletter.Letter) bool // selects among the letters of the query; nil for all
	Outcome string                         // outcome of a successful Do, "resent" or "removed"
	Do      func(ctx context.Context, l deadletter.Letter) error

	mu       sync.Mutex // guards outcomes
	outcomes []Outcome
}

// ResendWork returns the work that resends letters, all with the same change. If dry is true, the work only reports the
// outcomes.
func (l *Letters) ResendWork(f deadletter.Filter, change deadletter.Resend, dry bool) *LetterWork {
	do := l.Resend
	if dry {
		do = l.DryRun
	}
	return &LetterWork{Query: deadletter.Query{Filter: f}, Outcome: "resent",
		Do: func(ctx context.Context, letter deadletter.Letter) error {
			return do(ctx, letter, change, l.Time())
		}}
}

// RemovalWork returns the work that removes letters. If dry is true, the work only reports the outcomes.
func (l *Letters) RemovalWork(f deadletter.Filter, dry bool) *LetterWork {
	w := &LetterWork{Query: deadletter.Query{Filter: f, HeadersOnly: true}, Outcome: "removed", Do: l.Remove}
	if dry {
		w.Do = func(context.Context, deadletter.Letter) error { return nil }
	}
	return w
}

// Outcome counts the objects of a change with one outcome and one reason.
type Outcome struct {
	Outcome string `json:"outcome"` // of letters: resent, removed, left or gone
	Count   int    `json:"count"`
	Why     string `json:"why,omitempty"`
	Example string `json:"example,omitempty"` // one of the objects that the change has left; empty after a success
}

// Work runs Do on the letters of the query. Work ends when all letters are done, when the query fails, when Do fails
// for another reason than the letter, or when the context stop ends. In each case Work starts no further operation, and
// waits for the operations in progress, so that no letter remains in two streams. Work returns the outcomes so far,
// successes first. The error is the failure, or the cause of stop if stop has ended.
func (l *Letters) Work(ctx, stop context.Context, w *LetterWork) ([]Outcome, error) {
	stop, fail := context.WithCancelCause(stop)
	defer fail(nil)
	var workers errgroup.Group
	workers.SetLimit(letterWorkers)
	for letter, err := range l.List(stop, w.Query) {
		if err != nil {
			fail(err)
		}
		if stop.Err() != nil {
			break
		}
		if w.Keep != nil && !w.Keep(letter) {
			continue
		}
		workers.Go(func() error {
			if stop.Err() != nil { // stop may end while all workers are busy
				return nil
			}
			err := w.note(letter, w.Do(ctx, letter))
			if err != nil {
				fail(err)
			}
			return err
		})
	}
	_ = workers.Wait() // a worker's error is the cause of stop
	slices.SortFunc(w.outcomes, func(a, b Outcome) int { return strings.Compare(w.sortKey(a), w.sortKey(b)) })
	return append([]Outcome{}, w.outcomes...), context.Cause(stop)
}

// note counts the outcome of a letter. It returns an error only if err may concern other letters too.
func (w *LetterWork) note(l deadletter.Letter, err error) error {
	o := Outcome{Outcome: w.Outcome}
	switch {
	case errors.Is(err, deadletter.ErrAbsent):
		o.Outcome = LetterGone
	case errors.Is(err, deadletter.ErrNotResendable):
		o.Outcome, o.Example = LetterLeft, strconv.FormatUint(l.Sequence, 10)
		for _, a := range advice {
			if errors.Is(err, a.err) {
				o.Why = a.err.Error() + ": " + a.action
			}
		}
	case err != nil:
		return fmt.Errorf("dead letter %d: %w", l.Sequence, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.outcomes, func(existing Outcome) bool {
		return existing.Outcome == o.Outcome && existing.Why == o.Why
	})
	if i < 0 {
		i = len(w.outcomes)
		w.outcomes = append(w.outcomes, o)
	}
	w.outcomes[i].Count++
	return nil
}

// sortKey returns the sort key of an outcome. Successes sort first.
func (w *LetterWork) sortKey(o Outcome) string {
	if o.Outcome == w.Outcome {
		return ""
	}
	return o.Outcome + o.Why
}
