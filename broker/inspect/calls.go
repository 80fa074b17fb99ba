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
	// defaultLimit is the default of the field "most", the maximum number of messages whose headers a request reads, in
	// addition to samples.
	defaultLimit = 50_000
	// maxLimit is the maximum of the field "most". A request with maxLimit takes some seconds.
	maxLimit = 500_000
	// maxByMinute is the maximum length of a forecast whose buckets are minutes by default.
	maxByMinute = 2 * time.Hour
	// DefaultForecastLength is the default length of a forecast.
	DefaultForecastLength = 24 * time.Hour
)

// Calls returns the handlers of the control service's requests about lanes, messages and forecasts. Each request has
// its own inspector, which is closed after the answer.
func Calls(open func(context.Context) (*Inspector, error)) map[string]service.Call {
	withInspector := func(
		answer func(ctx context.Context, i *Inspector, rest string, body []byte) (any, error),
	) service.Call {
		return func(ctx context.Context, rest string, body []byte) (any, error) {
			i, err := open(ctx)
			if err != nil {
				return nil, err
			}
			defer i.Close()
			return answer(ctx, i, rest, body)
		}
	}
	return map[string]service.Call{
		"lanes": withInspector(callLanes), "where.*": withInspector(callWhere), "ahead": withInspector(callAhead),
	}
}

func callLanes(ctx context.Context, i *Inspector, _ string, body []byte) (any, error) {
	if err := service.Decode(body, &struct{}{}); err != nil {
		return nil, err
	}
	return i.Lanes(ctx, 0)
}

func callWhere(ctx context.Context, i *Inspector, id string, body []byte) (any, error) {
	request := struct {
		Most uint64 `json:"most"`
	}{defaultLimit}
	if err := service.Decode(body, &request); err != nil {
		return nil, err
	}
	ref, err := ParseMessageRef(id)
	if err != nil {
		return nil, service.BadRequest("%v", err)
	}
	if err := checkMaxRead(request.Most); err != nil {
		return nil, err
	}
	return i.Where(ctx, ref, request.Most, func(uint64, uint64) {})
}

func callAhead(ctx context.Context, i *Inspector, _ string, body []byte) (any, error) {
	request := struct {
		For    string `json:"for"`
		By     string `json:"by"`
		Target string `json:"target"`
		Most   uint64 `json:"most"`
	}{For: levels.FormatDuration(DefaultForecastLength), Most: defaultLimit}
	if err := service.Decode(body, &request); err != nil {
		return nil, err
	}
	query, err := ParseForecastQuery(request.For, request.By)
	if err != nil {
		return nil, service.BadRequest("%v", err)
	}
	if request.Target != "" && !message.ValidPattern(request.Target) {
		return nil, service.BadRequest(
			"target %q: want tokens separated by dots; * for one token, > for the rest", request.Target)
	}
	if err := checkMaxRead(request.Most); err != nil {
		return nil, err
	}
	query.Target, query.MaxRead = request.Target, request.Most
	return i.Forecast(ctx, query)
}

func checkMaxRead(maxRead uint64) error {
	if maxRead > maxLimit {
		return service.BadRequest("most %d: the maximum of a request is %d; the command delaybroker has no maximum",
			maxRead, maxLimit)
	}
	return nil
}

// ParseForecastQuery parses the length of a forecast and the unit of its buckets: minute or hour. If by is empty, the
// unit is a minute up to the length maxByMinute, and an hour above it.
func ParseForecastQuery(length, by string) (ForecastQuery, error) {
	query := ForecastQuery{Step: time.Hour}
	var err error
	if query.Length, err = levels.ParseDuration(length); err != nil {
		return query, fmt.Errorf("for: %w", err)
	}
	unit := "hour"
	switch {
	case by == "minute", by == "" && query.Length <= maxByMinute:
		query.Step, unit = time.Minute, "minute"
	case by != "" && by != "hour":
		return query, fmt.Errorf("by %q: want minute or hour", by)
	}
	if limit := maxBuckets * query.Step; query.Length <= 0 || query.Length > limit {
		return query, fmt.Errorf("for %s: want more than 0, and at most %s for buckets of one %s", length,
			levels.FormatDuration(limit), unit)
	}
	return query, nil
}
