package broker

import (
	"context"
	"time"

	"delaybroker/broker/history"
)

// remember notes the counts in the book at the end of each of its steps, until ctx ends. It costs one look at the
// counters in ten seconds, and asks NATS nothing.
func (b *Broker) remember(ctx context.Context) {
	book := b.cfg.History
	if book == nil {
		return
	}
	for {
		now := time.Now()
		book.Add(now, b.Status().Kept())
		select {
		case <-ctx.Done():
			return
		case <-time.After(now.Truncate(history.Fine).Add(history.Fine).Sub(now)):
		}
	}
}

// history is what an operator who asks for one of the spans gets; nil where nothing is kept.
func (b *Broker) history(span string, now time.Time) *history.Series {
	book := b.cfg.History
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
