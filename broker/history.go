package broker

import (
	"context"
	"time"

	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
)

// recordHistory adds the current counts to the history when it starts, and then every ten seconds by the clock, until
// ctx ends. It sends no request.
func (b *Broker) recordHistory(ctx context.Context) {
	book := b.cfg.History
	if book == nil {
		return
	}
	var lastTargets []stats.TargetCount
	var lastTime time.Time
	for {
		now, s := time.Now(), b.Status()
		book.Add(now, s.HistoryCounts())
		if !lastTime.IsZero() {
			recent := stats.TargetsSince(s.Targets, lastTargets, now.Sub(lastTime))
			b.tally.RecentTargets.Store(&recent)
		}
		lastTargets, lastTime = s.Targets, now
		select {
		case <-ctx.Done():
			return
		case <-time.After(now.Truncate(history.FineStep).Add(history.FineStep).Sub(now)):
		}
	}
}

// Targets returns the deliveries and refusals of this instance by target. With a history, recordHistory renews the
// counts and the rates every ten seconds. Before that, and without a history, the counts are current, and there are no
// rates.
func (b *Broker) Targets() []stats.TargetAnswer {
	if recent := b.tally.RecentTargets.Load(); recent != nil {
		return *recent
	}
	return stats.TargetsSince(b.tally.Read().Targets, nil, 0)
}

// history returns the history of a span. It returns nil for an unknown span, and if the broker keeps no history.
func (b *Broker) history(span string, now time.Time) *history.Series {
	book := b.cfg.History
	switch {
	case book == nil:
	case span == HistoryHour:
		return new(book.Hour(now))
	case span == HistoryDay:
		return new(book.Day(now))
	}
	return nil
}
