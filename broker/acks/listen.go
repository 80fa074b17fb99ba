package acks

import (
	"context"
	"sync"
	"time"
)

const (
	// linger is the time from a flush until a missing answer counts as silence. In 140 of 2,000 tries, the refusal of a
	// full stream arrived after the flush had returned.
	linger = 50 * time.Millisecond
	// flushEvery is the minimum time between two flushes. One flush serves all publishes since the last flush, so the
	// server's confirmation may be up to flushEvery late. A flush costs 0.2 ms of CPU time, the server's part included.
	flushEvery   = linger / 10
	flushTimeout = 10 * time.Second
	// flushesWaiting is the maximum number of flushes for which linger has not passed.
	flushesWaiting = 16
)

// flushed is a set of publishes that one flush has confirmed. If they have no answer at the time until, they are
// silent.
type flushed struct {
	publishes []token
	taken     time.Time // when the server confirmed the flush
	until     time.Time
}

// listen finds publishes without an answer. It flushes the connection, and reportSilent waits for linger, so that
// listen can flush later publishes meanwhile.
func (b *Inbox) listen(ctx context.Context) {
	lingering := make(chan flushed, flushesWaiting)
	var reporting sync.WaitGroup
	reporting.Go(func() { b.reportSilent(ctx, lingering) })
	defer reporting.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.unanswered:
		}
		b.mu.Lock()
		publishes := b.listening
		b.listening = nil
		b.mu.Unlock()
		started := time.Now()
		flush, cancel := context.WithTimeout(ctx, flushTimeout)
		err := b.nc.FlushWithContext(flush)
		cancel()
		if err != nil {
			continue // after a lost connection, Run ends the publishes; after a slow flush, their deadlines end them
		}
		now := time.Now()
		select {
		case <-ctx.Done():
			return
		case lingering <- flushed{publishes, now, now.Add(max(linger, 2*now.Sub(started)))}:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(flushEvery):
		}
	}
}

// reportSilent delivers ErrSilent to the publishes of each flush that have no result after linger.
func (b *Inbox) reportSilent(ctx context.Context, lingering <-chan flushed) {
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
			b.deliver(t, result{err: silence})
		}
	}
}
