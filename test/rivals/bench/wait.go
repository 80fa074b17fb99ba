package bench

import (
	"context"
	"time"
)

const (
	// pollInterval is the interval at which the run requests the number of arrivals.
	pollInterval = 100 * time.Millisecond
	// Missing messages count as lost if more than lossTimeout has passed both after the last due time and after the last
	// arrival.
	lossTimeout = 15 * time.Second
	// duplicateWait is the time for which the run waits for duplicates after the last arrival.
	duplicateWait = 500 * time.Millisecond
)

// A Wait has the parameters of the wait for a turn's messages, which are numbered from zero.
type Wait struct {
	Target     Target
	Count      int
	Turn       uint32
	Due        time.Time     // due time of the last message, by the local clock
	ClockError time.Duration // see newLedger
	FirstPlain int           // see Ledger
	// Arrived is called with the number of arrivals, several times a second. It may be nil.
	Arrived func(n int)
	// Complete is called when there are Count arrivals, or when the missing messages count as lost. If there are Count
	// arrivals, but some are duplicates or unknown, the wait continues and calls Complete again. Complete may be nil.
	Complete func() error
}

// Ledger waits until all messages have arrived, or the missing messages count as lost. Then it returns the ledger.
func (w Wait) Ledger(ctx context.Context) (*Ledger, error) {
	for want := w.Count; ; {
		arrived, timedOut, err := w.await(ctx, want)
		if err == nil && w.Complete != nil {
			err = w.Complete()
		}
		if err == nil {
			err = sleep(ctx, duplicateWait)
		}
		ledger := newLedger(w.Count, w.ClockError)
		ledger.FirstPlain = w.FirstPlain
		if err == nil {
			err = w.Target.Note(ctx, ledger, w.Turn)
		}
		if err != nil {
			return nil, err
		}
		if timedOut || ledger.Arrived() == w.Count {
			return ledger, nil
		}
		want = arrived + 1 // some arrivals were duplicates or unknown
	}
}

// await waits for the wanted number of arrivals, duplicates included, or until the missing messages count as lost.
func (w Wait) await(ctx context.Context, want int) (arrived int, timedOut bool, err error) {
	lastArrival := time.Now()
	for {
		n, err := w.Target.Arrived(ctx)
		if err != nil {
			return arrived, false, err
		}
		if n > arrived {
			arrived, lastArrival = n, time.Now()
		}
		if w.Arrived != nil {
			w.Arrived(n)
		}
		switch {
		case n >= want:
			return n, false, nil
		case min(time.Since(w.Due), time.Since(lastArrival)) > lossTimeout:
			return n, true, nil
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return n, false, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
