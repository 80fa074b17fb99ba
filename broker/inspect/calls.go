package inspect

import (
	"context"
	"fmt"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/service"
	"delaybroker/levels"
)

const (
	// defaultHeaders is the default number of headers that a request reads, maxHeaders the maximum. They keep the time
	// to the answer at some seconds.
	defaultHeaders, maxHeaders = 50_000, 500_000
	// byMinute is the maximum length of a forecast whose buckets are minutes by default.
	byMinute = 2 * time.Hour
	// DefaultAhead is the default length of a forecast.
	DefaultAhead = 24 * time.Hour
)

// Calls returns the handlers of the control service's requests about lanes, messages and forecasts. Each request has
// its own inspector, which is closed after the answer.
func Calls(open func(context.Context) (*Inspector, error)) map[string]service.Call {
	with := func(answer func(ctx context.Context, i *Inspector, rest string, body []byte) (any, error)) service.Call {
		return func(ctx context.Context, rest string, body []byte) (any, error) {
			i, err := open(ctx)
			if err != nil {
				return nil, err
			}
			defer i.Close()
			return answer(ctx, i, rest, body)
		}
	}
	return map[string]service.Call{"lanes": with(callLanes), "where.*": with(callWhere), "ahead": with(callAhead)}
}

func callLanes(ctx context.Context, i *Inspector, _ string, body []byte) (any, error) {
	if err := service.Decode(body, &struct{}{}); err != nil {
		return nil, err
	}
	return i.Look(ctx, 0)
}

func callWhere(ctx context.Context, i *Inspector, id string, body []byte) (any, error) {
	asked := struct {
		Most uint64 `json:"most"`
	}{defaultHeaders}
	if err := service.Decode(body, &asked); err != nil {
		return nil, err
	}
	wanted, err := ParseWanted(id)
	if err != nil {
		return nil, service.BadRequest("%v", err)
	}
	if err := checkMost(asked.Most); err != nil {
		return nil, err
	}
	return i.Where(ctx, wanted, asked.Most, func(uint64, uint64) {})
}

func callAhead(ctx context.Context, i *Inspector, _ string, body []byte) (any, error) {
	asked := struct {
		For    string `json:"for"`
		By     string `json:"by"`
		Target string `json:"target"`
		Most   uint64 `json:"most"`
	}{For: levels.FormatDuration(DefaultAhead), Most: defaultHeaders}
	if err := service.Decode(body, &asked); err != nil {
		return nil, err
	}
	look, err := ParseAhead(asked.For, asked.By)
	if err != nil {
		return nil, service.BadRequest("%v", err)
	}
	if asked.Target != "" && !message.ValidPattern(asked.Target) {
		return nil, service.BadRequest("target %q: tokens separated by dots; * for one token, > for the rest", asked.Target)
	}
	if err := checkMost(asked.Most); err != nil {
		return nil, err
	}
	look.Target, look.Most = asked.Target, asked.Most
	return i.Ahead(ctx, look)
}

func checkMost(most uint64) error {
	if most > maxHeaders {
		return service.BadRequest("most %d: the maximum of a request is %d; the command delaybroker has none", most,
			maxHeaders)
	}
	return nil
}

// ParseAhead parses the length of a forecast and the unit of its buckets: minute, hour, or empty for a suitable one.
func ParseAhead(length, by string) (AheadLook, error) {
	look := AheadLook{By: time.Hour}
	var err error
	if look.For, err = levels.ParseDuration(length); err != nil {
		return look, fmt.Errorf("for: %w", err)
	}
	unit := "hour"
	switch {
	case by == "minute", by == "" && look.For <= byMinute:
		look.By, unit = time.Minute, "minute"
	case by != "" && by != "hour":
		return look, fmt.Errorf("by %q: want minute or hour", by)
	}
	if most := MaxBuckets * look.By; look.For <= 0 || look.For > most {
		return look, fmt.Errorf("for %s: want more than 0 and at most %s by the %s", length, levels.FormatDuration(most),
			unit)
	}
	return look, nil
}
