package page

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
)

const historyHour, historyDay = broker.HistoryHour, broker.HistoryDay

// Past is the history of all instances together, with one value for each interval. The value of an interval without
// data is nil.
type Past struct {
	Step      int        `json:"step"` // length of an interval, in seconds
	From      int64      `json:"from"` // unix seconds
	Delivered []*float64 `json:"delivered"`
	Refused   []*float64 `json:"refused"`
	Pending   []*float64 `json:"pending"`
	P50       []*float64 `json:"p50"` // milliseconds
	P99       []*float64 `json:"p99"`
}

// fleetHistory adds up the histories of all instances.
func (p *Page) fleetHistory(span string, now time.Time, members []inspect.Member) history.Series {
	s := p.cfg.History.Hour(now)
	if span == historyDay {
		s = p.cfg.History.Day(now)
	}
	own := p.cfg.Engine.Instance()
	for _, m := range members {
		if m.Proven && m.History != nil && m.Instance != own {
			s.Add(*m.History)
		}
	}
	return s
}

func pastOf(s history.Series) Past {
	past, bounds := Past{Step: s.Step, From: s.From}, stats.LatenessBounds()
	for i := range s.Delivered {
		past.Delivered = append(past.Delivered, perSecondOf(s.Delivered[i], s.Step))
		past.Refused = append(past.Refused, perSecondOf(s.Refused[i], s.Step))
		past.Pending = append(past.Pending, perSecondOf(s.Pending[i], 1))
		past.P50 = append(past.P50, quantile(s.Late[i], bounds, 0.5))
		past.P99 = append(past.P99, quantile(s.Late[i], bounds, 0.99))
	}
	return past
}

// perSecondOf converts the count of an interval to a rate per second.
func perSecondOf(n int64, seconds int) *float64 {
	if n == history.Unknown {
		return nil
	}
	return new(rounded(float64(n) / float64(seconds)))
}

func quantile(late []uint64, bounds []time.Duration, share float64) *float64 {
	d, ok := history.Quantile(late, bounds, share)
	if !ok {
		return nil
	}
	return new(rounded(d.Seconds() * 1000))
}

func rounded(f float64) float64 { return math.Round(f*100) / 100 }

// lastHour returns the history of all instances for the last hour. It keeps the lateness of the last interval for the
// overview.
func (w *watch) lastHour(now time.Time, members []inspect.Member) Past {
	past := pastOf(w.fleetHistory(historyHour, now, members))
	w.lateP50, w.lateP99 = last(past.P50), last(past.P99)
	return past
}

// last returns the newest known value of the last minute, or nil if there is none.
func last(column []*float64) *float64 {
	for i := len(column) - 1; i >= max(0, len(column)-6); i-- { // each value is for ten seconds
		if column[i] != nil {
			return column[i]
		}
	}
	return nil
}

// history responds with the last hour or day.
func (p *Page) history(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	span := v.Get("span")
	if span != historyHour && span != historyDay {
		return nil, fmt.Errorf("%w: span %q: want 1h or 24h", errAsked, span)
	}
	members, err := i.Fleet(ctx, broker.QueryOptions{History: span, Except: p.cfg.Engine.Instance()})
	if err != nil {
		return nil, err
	}
	return pastOf(p.fleetHistory(span, time.Now(), members)), nil
}

// ahead responds with the number of messages that become due in the next hour, or in seven days.
func (p *Page) ahead(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	look := inspect.ForecastQuery{Length: time.Hour, Step: time.Minute, MaxRead: aheadRead}
	switch span := v.Get("span"); span {
	case "1h":
	case "7d":
		look.Length, look.Step = 7*24*time.Hour, time.Hour
	default:
		return nil, fmt.Errorf("%w: span %q: want 1h or 7d", errAsked, span)
	}
	return i.Forecast(ctx, look)
}
