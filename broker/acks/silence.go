package acks

import (
	"context"
	"sync"
	"time"
)

const (
	// silenceAfter is the time from a flush until a missing answer counts as silence. The flush alone is no proof of
	// silence: in 140 of 2,000 tries, the refusal of a full stream arrived after the flush had returned.
	silenceAfter = 50 * time.Millisecond
	// flushEvery is the minimum time between two flushes. One flush confirms all publishes since the last flush, so a
	// confirmation may be up to flushEvery late. A flush costs 0.2 ms of CPU time, the server's part included.
	flushEvery   = silenceAfter / 10
	flushTimeout = 10 * time.Second
	// maxFlushes is the maximum number of confirmed flushes for which silenceAfter has not passed.
	maxFlushes = 16
)

// flushed is a set of publishes that one flush has confirmed.
type flushed struct {
	publishes []token
	taken     time.Time // when the server confirmed the flush
	silentAt  time.Time // when a missing answer counts as silence
}

// flushLoop flushes the connection for publishes that wait for ErrSilent, until ctx ends. It passes them to
// reportSilent, which waits for silenceAfter, so that flushLoop can flush later publishes meanwhile.
func (b *Inbox) flushLoop(ctx context.Context) {
	confirmed := make(chan flushed, maxFlushes)
	var reporting sync.WaitGroup
	reporting.Go(func() { b.reportSilent(ctx, confirmed) })
	defer reporting.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.flushWanted:
		}
		b.mu.Lock()
		publishes := b.unflushed
		b.unflushed = nil
		b.mu.Unlock()
		started := time.Now()
		flush, cancel := context.WithTimeout(ctx, flushTimeout)
		err := b.nc.FlushWithContext(flush)
		cancel()
		if err != nil {
			continue // if the connection was lost, Run ends the publishes; if the flush was slow, their timeouts end them
		}
		now := time.Now()
		select {
		case <-ctx.Done():
			return
		case confirmed <- flushed{publishes, now, now.Add(max(silenceAfter, 2*now.Sub(started)))}:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(flushEvery):
		}
	}
}

// reportSilent delivers ErrSilent to the publishes that have no result silenceAfter their flush, until ctx ends.
func (b *Inbox) reportSilent(ctx context.Context, confirmed <-chan flushed) {
	for {
		var f flushed
		select {
		case <-ctx.Done():
			return
		case f = <-confirmed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(f.silentAt)):
		}
		silence := &Silence{f.taken}
		for _, t := range f.publishes {
			b.deliver(t, result{err: silence})
		}
	}
}
