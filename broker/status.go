package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

// Status is what the broker is doing and has done since it started.
type Status = stats.Status

// LaneStatus is the state of one lane.
type LaneStatus = stats.LaneStatus

// Status looks at all lanes. It takes no lock that a loop holds, and asks NATS nothing.
func (b *Broker) Status() Status {
	s := Status{
		Draining: b.draining.Load(), Links: b.conns.Status(), Counts: b.tally.Read(),
		Journal: stats.JournalStatus{
			Kept: b.cfg.Journal > 0, Stored: b.tally.Journal.Stored.Load(), Dropped: b.tally.Journal.Dropped.Load(),
		},
		Paused: []stats.PauseStatus{}, Waiting: b.pauses.Waiting(),
	}
	select {
	case <-b.ready:
		s.Ready = true
	default:
	}
	for _, p := range b.pauses.List().Present() {
		s.Paused = append(s.Paused, stats.PauseStatus{Pattern: p.Pattern, State: p.State, Since: p.Since})
	}
	now := time.Now()
	owned := make(map[string]*worker)
	for _, w := range b.roster.enlisted() {
		owned[w.lane.Stream] = w
	}
	for _, c := range b.roster.counted() {
		l := c.Read()
		l.Owner = b.leaser.Owner(l.Stream)
		if w := owned[l.Stream]; w != nil {
			l.Owned, l.InDoubt, l.Live = true, !w.lease.Held(), w.reading.Live() != 0
			w.gauge.Fill(&l, now)
		}
		if l.Kind == string(streams.Paused) {
			l.Owned, l.Live, l.Level = b.pauses.owning.Load(), b.pauses.owning.Load(), ""
			l.Pending = b.pauses.Waiting()
		}
		s.Lanes = append(s.Lanes, l)
	}
	slices.SortFunc(s.Lanes, stats.ByWay)
	return s
}

// Alive returns nil when the loop of every lane has turned before ctx ended. It says nothing about NATS.
func (b *Broker) Alive(ctx context.Context) error {
	workers := b.roster.enlisted()
	stuck := make([]error, len(workers))
	var asking sync.WaitGroup
	for i, w := range workers {
		asking.Go(func() { // at the same time, or a loop that stands still would use up the time of the others
			select {
			case w.ping <- struct{}{}:
			case <-w.gone:
			case <-ctx.Done():
				stuck[i] = fmt.Errorf("the loop of %s does not turn", w.lane.Stream)
			}
		})
	}
	asking.Wait()
	return errors.Join(stuck...)
}
