package broker

import (
	"context"

	"delaybroker/broker/stats"
)

// Status is the state of the broker, and its counts since it started.
type Status = stats.Status

// LaneStatus is the state of one lane.
type LaneStatus = stats.LaneStatus

// Status returns the state of the broker. It waits for no lane's loop, and sends no request.
func (b *Broker) Status() Status {
	s := Status{
		Draining: b.draining.Load(), Links: b.links.Status(), Counts: b.tally.Read(),
		Journal: stats.JournalStatus{Kept: b.cfg.Journal > 0},
		Pauses:  []stats.PauseStatus{}, PausedMessages: b.pauses.ParkedMessages(),
	}
	select {
	case <-b.Ready():
		s.Ready = true
	default:
	}
	for _, p := range b.pauses.List().Present() {
		s.Pauses = append(s.Pauses, stats.PauseStatus{Pattern: p.Pattern, State: p.State, Since: p.Since})
	}
	s.Journal.Stored, s.Journal.Dropped = b.journalWriter.Load().Counts()
	s.Lanes = b.engine.Lanes()
	return s
}

// Alive returns nil if the loop of every lane responds before ctx ends. It does not depend on NATS.
func (b *Broker) Alive(ctx context.Context) error { return b.engine.Alive(ctx) }
