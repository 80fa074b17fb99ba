package page

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
)

// History is the history of the fleet, which all instances keep. Each column has one value for each interval. The value
// is nil for an interval without data.
type History struct {
	Step      int        `json:"step"`      // length of an interval, in seconds
	From      int64      `json:"from"`      // begin of the first interval, in unix seconds
	Delivered []*float64 `json:"delivered"` // messages per second
	Refused   []*float64 `json:"refused"`   // messages per second
	Pending   []*float64 `json:"pending"`   // messages
	P50       []*float64 `json:"p50"`       // percentiles of the lateness, in milliseconds
	P99       []*float64 `json:"p99"`

	Marks []stats.Mark        `json:"marks"` // take-overs, and changes of pauses
	Lanes map[string][]uint64 `json:"lanes"` // pending messages at the latest steps of ten seconds, by stream
}

func (p *Page) newHistory(s history.Series) History {
	bounds := stats.LatenessBounds()
	h := History{Step: s.Step, From: s.From, Marks: p.cfg.Engine.Marks(), Lanes: p.cfg.Engine.LaneHistory()}
	for i := range s.Delivered {
		h.Delivered = append(h.Delivered, quotient(s.Delivered[i], s.Step))
		h.Refused = append(h.Refused, quotient(s.Refused[i], s.Step))
		h.Pending = append(h.Pending, quotient(s.Pending[i], 1))
		h.P50 = append(h.P50, quantile(s.Late[i], bounds, 0.5))
		h.P99 = append(h.P99, quantile(s.Late[i], bounds, 0.99))
	}
	return h
}

// quotient returns n divided by seconds, or nil if n is unknown.
func quotient(n int64, seconds int) *float64 {
	if n == history.Unknown {
		return nil
	}
	return new(round(float64(n) / float64(seconds)))
}

// quantile returns a quantile of the lateness, in milliseconds, or nil if there is no data. Q is between 0 and 1.
func quantile(late []uint64, bounds []time.Duration, q float64) *float64 {
	d, ok := history.Quantile(late, bounds, q)
	if !ok {
		return nil
	}
	return new(round(d.Seconds() * 1000))
}

func round(f float64) float64 { return math.Round(f*100) / 100 }

// lastHour returns the history of the last hour. It also sets lateP50 and lateP99.
func (w *watch) lastHour(now time.Time) History {
	h := w.newHistory(w.cfg.History.Hour(now))
	w.lateP50, w.lateP99 = newestValue(h.P50), newestValue(h.P99)
	return h
}

// newestValue returns the newest known value of the last minute, or nil if no value is known.
func newestValue(column []*float64) *float64 {
	for i := len(column) - 1; i >= max(0, len(column)-6); i-- { // an interval has ten seconds
		if column[i] != nil {
			return column[i]
		}
	}
	return nil
}

// history returns the history of the last hour or day.
func (p *Page) history(_ context.Context, _ *inspect.Inspector, v url.Values) (any, error) {
	switch span := v.Get("span"); span {
	case "1h":
		return p.newHistory(p.cfg.History.Hour(time.Now())), nil
	case "24h":
		return p.newHistory(p.cfg.History.Day(time.Now())), nil
	default:
		return nil, fmt.Errorf("%w: span %q: want 1h or 24h", errRequest, span)
	}
}

// ahead returns the forecast for the next hour or the next seven days.
func (p *Page) ahead(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	query := inspect.ForecastQuery{Length: time.Hour, Step: time.Minute, MaxRead: aheadRead}
	switch span := v.Get("span"); span {
	case "1h":
	case "7d":
		query.Length, query.Step = 7*24*time.Hour, time.Hour
	default:
		return nil, fmt.Errorf("%w: span %q: want 1h or 7d", errRequest, span)
	}
	return i.Forecast(ctx, query)
}
