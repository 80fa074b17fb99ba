package bench

import (
	"context"
	"time"
)

const (
	// poll is the interval at which the run requests the number of arrivals.
	poll = 100 * time.Millisecond
	// timeout is the maximum time without an arrival after the last due time. After it, the missing messages are lost.
	timeout = 15 * time.Second
	// settle is the time for duplicates to arrive after the last message.
	settle = 500 * time.Millisecond
)

// A Wait is a wait for the messages of a turn, numbered from zero.
type Wait struct {
	Target Target
	Count  int
	Turn   uint32
	Due    time.Time     // due time of the last message, by the local clock
	Within time.Duration // see NewLedger
	Plain  int           // see Ledger
	// Arrived is called with the number of arrivals, several times a second. Whole is called when all messages have
	// arrived, duplicates included, or no more arrive. Either may be nil.
	Arrived func(n int)
	Whole   func() error
}

// Ledger waits until all messages have arrived or the rest is lost, and returns the ledger. If duplicates completed the
// number, it continues to wait.
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

// await waits until the wanted number has arrived, duplicates included. Over is true if nothing has arrived for timeout
// after the last due time.
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
		case time.Now().After(w.Due) && time.Since(since) > timeout:
			return n, true, nil
		}
		if err := sleep(ctx, poll); err != nil {
			return n, false, err
		}
	}
}

// sleep sleeps for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
