package broker

import (
	"context"
	"time"

	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
)

// remember notes the counts in the book at the end of each of its steps, until ctx ends. It costs one look at the
// counters in ten seconds, and asks NATS nothing.
func (b *Broker) remember(ctx context.Context) {
	book := b.cfg.History
	if book == nil {
		return
	}
	var last []stats.TargetCount
	var lastAt time.Time
	for {
		now, s := time.Now(), b.Status()
		book.Add(now, s.Kept())
		if !lastAt.IsZero() {
			lately := stats.TargetsSince(s.Targets, last, now.Sub(lastAt))
			b.tally.Lately.Store(&lately)
		}
		last, lastAt = s.Targets, now
		select {
		case <-ctx.Done():
			return
		case <-time.After(now.Truncate(history.Fine).Add(history.Fine).Sub(now)):
		}
	}
}

// Targets are the targets that this instance delivered to, as of the last step of its history, where one is kept.
func (b *Broker) Targets() []stats.TargetAnswer {
	if lately := b.tally.Lately.Load(); lately != nil {
		return *lately
	}
	return stats.TargetsSince(b.tally.Read().Targets, nil, 0)
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
