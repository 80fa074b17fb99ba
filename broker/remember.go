package broker

import (
	"context"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/history"
	"delaybroker/broker/layout"
)

// remember notes the counts in the book at the end of each of its steps, until ctx ends. It costs one look at the
// counters in ten seconds, and asks NATS nothing.
func (b *Broker) remember(ctx context.Context) {
	book := b.streams.cfg.History
	if book == nil {
		return
	}
	book.Add(time.Now(), b.Status().counts())
	for {
		now := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-time.After(now.Truncate(history.Fine).Add(history.Fine).Sub(now)):
			book.Add(time.Now(), b.Status().counts())
		}
	}
}

// history is what an operator who asks for one of the spans gets; nil where nothing is kept.
func (b *Broker) history(span string, now time.Time) *history.Series {
	book := b.streams.cfg.History
	if book == nil {
		return nil
	}
	var s history.Series
	switch span {
	case HistoryHour:
		s = book.Hour(now)
	case HistoryDay:
		s = book.Day(now)
	default:
		return nil
	}
	return &s
}

// counts are those that are kept.
func (s Status) counts() history.Counts {
	c := history.Counts{Late: make([]uint64, len(latenessBounds)+1)}
	t := s.totals(time.Time{})
	c.Delivered, c.Refused = t.Delivered, t.Refused
	for _, l := range s.Lanes {
		if l.Owned {
			c.Pending += l.Pending
		}
	}
	for _, kind := range layout.Lanes() {
		var before uint64
		h := s.Lateness[kind]
		for i, bucket := range h.Buckets {
			c.Late[i] += bucket.Count - before
			before = bucket.Count
		}
		c.Late[len(latenessBounds)] += h.Count - before
	}
	return c
}

func (s Status) totals(started time.Time) *Totals {
	t := &Totals{
		Started: started.UTC(), Delivered: s.Outcomes[deliver.Delivered.String()],
		Refused: s.Outcomes[deliver.Refused.String()],
	}
	for _, n := range s.Dead {
		t.Dead += n
	}
	return t
}

// LatenessBounds are the upper bounds of the buckets of lateness, of which one more has none.
func LatenessBounds() []time.Duration { return append([]time.Duration(nil), latenessBounds[:]...) }
