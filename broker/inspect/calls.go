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
	// callMost is how many headers a call reads unless it is told otherwise, and mostCall how many at most: it is over
	// within seconds.
	callMost, mostCall = 50_000, 500_000
	// byMinute is up to which time a forecast is by the minute unless told otherwise.
	byMinute = 2 * time.Hour
	// DefaultAhead is how far ahead a forecast looks unless told otherwise.
	DefaultAhead = 24 * time.Hour
)

// Calls are the questions about all that is there, as the control service answers them for any client of NATS. Each has
// an inspector of its own, which is closed with the answer.
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
	}{callMost}
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
	}{For: levels.FormatDuration(DefaultAhead), Most: callMost}
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
	if most > mostCall {
		return service.BadRequest("most %d: at most %d, or the answer would come too late; the command takes more", most,
			mostCall)
	}
	return nil
}

// ParseAhead reads how far a forecast looks, and by what: minute or hour, or empty for what suits.
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
	if most := MostBuckets * look.By; look.For <= 0 || look.For > most {
		return look, fmt.Errorf("for %s: want more than 0 and at most %s by the %s", length, levels.FormatDuration(most),
			unit)
	}
	return look, nil
}
