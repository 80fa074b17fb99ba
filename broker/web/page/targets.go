package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
)

// flow has the fleet's deliveries and refusals of a target, or of the targets that match a pattern.
type flow struct {
	stats.TargetAnswer
	Limit int    `json:"limit_per_second,omitempty"` // maximum rate of each target, from DELAY_RATE
	Pause string `json:"paused,omitempty"`           // state of the pause, and its pattern; empty if not paused
}

// targets answers with the deliveries, refusals and pauses of the busiest targets.
func (p *Page) targets(ctx context.Context, i *inspect.Inspector, _ url.Values) (any, error) {
	paused, err := i.Pauses(ctx)
	if err != nil && !errors.Is(err, inspect.ErrNoPauses) {
		return nil, err
	}
	return map[string]any{"time": time.Now().UTC(), "flows": p.flows(paused)}, nil
}

// flows returns the targets of the fleet's deliveries, the busiest first, at most maxRows.
func (p *Page) flows(paused []inspect.Pause) []flow {
	flows := []flow{}
	for _, t := range p.cfg.Engine.Targets() {
		if len(flows) == maxRows {
			break
		}
		flow := flow{TargetAnswer: t, Pause: pauseOf(t.Target, paused)}
		for _, rule := range p.cfg.Rates {
			if rule.Pattern == t.Rate {
				flow.Limit = rule.Value
				break
			}
		}
		flows = append(flows, flow)
	}
	return flows
}

// pauseOf describes the first pause that covers a target or pattern of targets, in full or in part. It returns "" if
// there is none.
func pauseOf(target string, paused []inspect.Pause) string {
	for _, p := range paused {
		switch {
		case covers(p.Pattern, target):
			return fmt.Sprintf("%s (%s)", p.State, p.Pattern)
		case message.Overlap(p.Pattern, target):
			return fmt.Sprintf("%s in part (%s)", p.State, p.Pattern)
		}
	}
	return ""
}

// covers reports whether a pattern matches all subjects that another pattern matches.
func covers(pattern, other string) bool {
	stem, hasRest := strings.CutSuffix(other, ">")
	if !hasRest {
		return message.Match(pattern, other)
	}
	const token = "\x00" // a token that is in no pattern, so only a wildcard matches it
	return message.Match(pattern, stem+token) && message.Match(pattern, stem+token+"."+token)
}
