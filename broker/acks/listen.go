package acks

import (
	"context"
	"sync"
	"time"
)

const (
	// linger is how long after a flush an answer may still come before its absence counts. A refusal by a full stream was
	// seen after the flush had returned, in 140 of 2,000 tries.
	linger = 50 * time.Millisecond
	// flushEvery is the least time from one flush to the next. What was published in between is flushed together, and
	// seems to be taken by the server up to so much later than it was. A flush costs 0.2 ms of CPU time, the server's
	// included.
	flushEvery   = linger / 10
	flushTimeout = 10 * time.Second
	// flushesWaiting is how many flushes may be lingered after at once.
	flushesWaiting = 16
)

// flushed are publishes that the server has taken. Without an answer until then, they are silent.
type flushed struct {
	publishes []token
	taken     time.Time
	until     time.Time
}

// listen finds publishes without an answer. It flushes, and has tellSilent wait for linger: meanwhile, later publishes
// are flushed already.
func (b *Inbox) listen(ctx context.Context) {
	lingering := make(chan flushed, flushesWaiting)
	var telling sync.WaitGroup
	telling.Go(func() { b.tellSilent(ctx, lingering) })
	defer telling.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.unanswered:
		}
		b.mu.Lock()
		asked := b.listening
		b.listening = nil
		b.mu.Unlock()
		started := time.Now()
		flush, cancel := context.WithTimeout(ctx, flushTimeout)
		err := b.nc.FlushWithContext(flush)
		cancel()
		if err != nil {
			continue // disconnected: Run ends them; or too slow: their deadlines do
		}
		now := time.Now()
		select {
		case <-ctx.Done():
			return
		case lingering <- flushed{asked, now, now.Add(max(linger, 2*now.Sub(started)))}:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(flushEvery):
		}
	}
}

// tellSilent tells ErrSilent to the publishes of each flush that have no result when they have been lingered after.
func (b *Inbox) tellSilent(ctx context.Context, lingering <-chan flushed) {
	for {
		var f flushed
		select {
		case <-ctx.Done():
			return
		case f = <-lingering:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(f.until)):
		}
		silence := &Silence{f.taken}
		for _, t := range f.publishes {
			b.tell(t, result{err: silence})
		}
	}
}
