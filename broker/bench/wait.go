package bench

import (
	"context"
	"time"
)

const (
	// poll is how often a target is asked what has arrived.
	poll = 100 * time.Millisecond
	// patience is how long nothing may arrive, when everything is due, before the rest is lost.
	patience = 15 * time.Second
	// settle is how long copies may come after the last message.
	settle = 500 * time.Millisecond
)

// A Wait is for the messages of a turn, numbered from zero, to arrive.
type Wait struct {
	Target Target
	Count  int
	Turn   uint32
	Due    time.Time     // when the last is due, by our clock
	Within time.Duration // see NewLedger
	Plain  int           // see Ledger
	// Arrived is called with how many have, several times a second. Whole is called when there are as many as were
	// published, or no more come: then the work is done. Either may be nil.
	Arrived func(n int)
	Whole   func() error
}

// Ledger reads what has arrived when all has, or the rest is lost. It waits on while copies stand for messages that
// have not come.
func (w Wait) Ledger(ctx context.Context) (*Ledger, error) {
	for want := w.Count; ; {
		there, over, err := w.await(ctx, want)
		if err == nil && w.Whole != nil {
			err = w.Whole()
		}
		if err == nil {
			err = sleep(ctx, settle)
		}
		ledger := NewLedger(w.Count, w.Within)
		ledger.Plain = w.Plain
		if err == nil {
			err = w.Target.Note(ctx, ledger, w.Turn)
		}
		if err != nil {
			return nil, err
		}
		if over || ledger.Arrived() == w.Count {
			return ledger, nil
		}
		want = there + 1
	}
}

// await waits until as many have arrived, copies included, or none has for a while although the last is due: then over
// is true.
func (w Wait) await(ctx context.Context, want int) (there int, over bool, err error) {
	since := time.Now()
	for {
		n, err := w.Target.Arrived(ctx)
		if err != nil {
			return there, false, err
		}
		if n > there {
			there, since = n, time.Now()
		}
		if w.Arrived != nil {
			w.Arrived(n)
		}
		switch {
		case n >= want:
			return n, false, nil
		case time.Now().After(w.Due) && time.Since(since) > patience:
			return n, true, nil
		}
		if err := sleep(ctx, poll); err != nil {
			return n, false, err
		}
	}
}

// sleep returns early when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
