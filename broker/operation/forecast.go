package operation

import (
	"cmp"
	"context"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/levels"
)

// maxByMinute is the maximum length of a forecast whose buckets are minutes by default.
const maxByMinute = 2 * time.Hour

func forecast(b Bounds) *Use {
	var q inspect.ForecastQuery
	length, unit := levels.FormatDuration(24*time.Hour), ""
	units := []string{"minute", "hour"}
	span := Duration(&length, "for", "length of the forecast")
	by := Parsed(&unit, "by", "minute or hour (default: minute if --for is at most 2h, otherwise hour)", OneOf(units))
	span.Default, by.Choices = length, units
	u := &Use{Params: []*Param{span, by, pattern(&q.Target), b.reads(&q.MaxRead, 50_000, 0)}}
	u.Check = func() (err error) {
		if q.Length, err = levels.ParseDuration(length); err != nil {
			return invalidParam("for", "%v", err)
		}
		q.Step = time.Hour
		chosen := cmp.Or(unit, units[1])
		if unit == units[0] || unit == "" && q.Length <= maxByMinute {
			q.Step, chosen = time.Minute, units[0]
		}
		if limit := inspect.MaxBuckets * q.Step; q.Length <= 0 || q.Length > limit {
			return invalidParam("for", "%s: want more than 0, and at most %s for buckets of one %s", length,
				levels.FormatDuration(limit), chosen)
		}
		return nil
	}
	u.Look = func(ctx context.Context, d *Desk, show func(any) error) (End, error) {
		f, err := d.Forecast(ctx, q)
		if err != nil {
			return End{}, err
		}
		return End{}, show(f)
	}
	return u
}
