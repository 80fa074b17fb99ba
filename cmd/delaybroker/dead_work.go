package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"delaybroker/broker/deadletter"
)

// deadHands is how many letters are dealt with at a time. One after the other, each would cost two round trips.
const deadHands = 32

// errLettersLeft is returned when some of the letters were left. It is an answer and has been printed.
var errLettersLeft = errors.New("some dead letters were left")

// What became of a letter that was neither resent nor removed.
const (
	letterLeft = "left" // for a reason of its own
	letterGone = "gone" // somebody else was quicker
)

// advice is what helps a letter that was left.
var advice = []struct {
	err  error
	what string
}{
	{deadletter.ErrUnproven, "look at it with delaybroker dead show; --unsealed delivers it"},
	{deadletter.ErrNoTarget, "name one with --to"},
	{deadletter.ErrForbidden, "allow it, or name another with --to"},
	{deadletter.ErrNoTime, "--now delivers it at once"},
	{deadletter.ErrPastExpiry, "--drop-expiry delivers it all the same"},
	{deadletter.ErrTooLarge, "raise max_payload and the streams' max_msg_size"},
	{deadletter.ErrUnreadable, "see delaybroker dead show"},
}

// letterWork is something that is done to many letters.
type letterWork struct {
	*desk
	did    string // what it is called when it is done
	dry    bool   // nothing is
	bodies bool   // do wants the payloads
	do     func(ctx context.Context, l deadletter.Letter) error

	mu       sync.Mutex // guards outcomes
	outcomes []letterOutcome
}

// letterOutcome is what happened to some letters, for one reason.
type letterOutcome struct {
	Did     string `json:"did"` // resent, removed, left or gone
	Letters int    `json:"letters"`
	Why     string `json:"why,omitempty"`
	Number  uint64 `json:"number,omitempty"` // of one of them
}

// letterSummary is the end of a run. What has been done is in it also when the run failed.
type letterSummary struct {
	DryRun   bool            `json:"dry_run"`
	Complete bool            `json:"complete"` // all letters that were chosen were dealt with
	Outcomes []letterOutcome `json:"outcomes"`
}

// work does it to the letters that were chosen, until all are done, something fails, or somebody interrupts. Then no
// further letter is begun, and those under way are finished: none is left between two streams.
func (a *app) work(ctx context.Context, w *letterWork) error {
	stopping, stop := interruptible(ctx)
	defer stop()
	stopping, fail := context.WithCancelCause(stopping)
	defer fail(nil)
	watch := lookout{app: a, what: "dead letters"}
	letters := make(chan deadletter.Letter)
	var working sync.WaitGroup
	for range deadHands {
		working.Go(func() {
			for l := range letters {
				if err := w.note(l, w.do(ctx, l)); err != nil {
					fail(err)
				}
			}
		})
	}
	for l, err := range w.box.List(stopping, deadletter.Query{Filter: w.filter, HeadersOnly: !w.bodies, Progress: watch.look}) {
		if err != nil {
			fail(err)
			break
		}
		select {
		case letters <- l:
		case <-stopping.Done():
		}
		if stopping.Err() != nil {
			break
		}
	}
	close(letters)
	working.Wait()
	err := context.Cause(stopping)
	watch.bar.stop()
	if shown := a.showOutcomes(w, err == nil); err == nil {
		err = shown
	}
	if err != nil {
		return err
	}
	return w.verdict()
}

// note counts what became of a letter, and returns an error that is not about this letter alone.
func (w *letterWork) note(l deadletter.Letter, err error) error {
	o := letterOutcome{Did: w.did}
	switch {
	case errors.Is(err, deadletter.ErrAbsent):
		o.Did = letterGone
	case errors.Is(err, deadletter.ErrStays):
		o.Did, o.Number = letterLeft, l.Sequence
		for _, a := range advice {
			if errors.Is(err, a.err) {
				o.Why = a.err.Error() + ": " + a.what
			}
		}
	case err != nil:
		return fmt.Errorf("number %d: %w", l.Sequence, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.outcomes, func(has letterOutcome) bool { return has.Did == o.Did && has.Why == o.Why })
	if i < 0 {
		i = len(w.outcomes)
		w.outcomes = append(w.outcomes, o)
	}
	w.outcomes[i].Letters++
	return nil
}

func (a *app) showOutcomes(w *letterWork, complete bool) error {
	slices.SortFunc(w.outcomes, func(a, b letterOutcome) int { return strings.Compare(w.order(a), w.order(b)) })
	if a.json {
		return a.printJSON(letterSummary{DryRun: w.dry, Complete: complete, Outcomes: append([]letterOutcome{}, w.outcomes...)})
	}
	if len(w.outcomes) == 0 {
		if !complete {
			return nil
		}
		_, err := fmt.Fprintln(a.stdout, none(w.filter))
		return err
	}
	t := a.sheet(column{name: "was"}, column{name: "letters"}, column{name: "why", least: 12, wrap: true}, column{name: "such as number", drop: 1})
	for _, o := range w.outcomes {
		did, number := o.Did, ""
		if w.dry {
			did = "would be " + did
		}
		if o.Number > 0 {
			number = fmt.Sprint(o.Number)
		}
		t.add(did, o.Letters, o.Why, number)
	}
	t.print()
	return nil
}

// order puts first what was to be done.
func (w *letterWork) order(o letterOutcome) string {
	if o.Did == w.did {
		return ""
	}
	return o.Did + o.Why
}

// verdict is the exit code of a complete run.
func (w *letterWork) verdict() error {
	for _, o := range w.outcomes {
		if o.Did == letterLeft {
			return logged{errLettersLeft}
		}
	}
	if len(w.outcomes) == 0 && len(w.filter.IDs)+len(w.filter.Sequences) > 0 {
		return logged{errNoLetter}
	}
	return nil
}
