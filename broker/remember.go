package broker

import (
	"context"
	"time"

	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
)

// remember adds the counts to the history at the end of each of its steps, until ctx ends. It reads the counters once
// in ten seconds, and sends no request.
func (b *Broker) remember(ctx context.Context) {
	book := b.cfg.History
	if book == nil {
		return
	}
	var last []stats.TargetCount
	var lastAt time.Time
	for {
		now, s := time.Now(), b.Status()
		book.Add(now, s.HistoryCounts())
		if !lastAt.IsZero() {
			lately := stats.TargetsSince(s.Targets, last, now.Sub(lastAt))
			b.tally.RecentTargets.Store(&lately)
		}
		last, lastAt = s.Targets, now
		select {
		case <-ctx.Done():
			return
		case <-time.After(now.Truncate(history.FineStep).Add(history.FineStep).Sub(now)):
		}
	}
}

// Targets returns the targets to which this instance delivered, as of the last step of its history, if it keeps one.
func (b *Broker) Targets() []stats.TargetAnswer {
	if lately := b.tally.RecentTargets.Load(); lately != nil {
		return *lately
	}
	return stats.TargetsSince(b.tally.Read().Targets, nil, 0)
}

// history returns the series of a span, or nil if no history is kept.
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
