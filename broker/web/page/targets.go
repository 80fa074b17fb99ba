package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
)

// Target is a target with messages in the retry lanes.
type Target struct {
	Target string               `json:"target"`
	Rate   string               `json:"rate,omitempty"`   // maximum rate, and the pattern in DELAY_RATE
	Pause  string               `json:"paused,omitempty"` // state of the pause, and its pattern; empty if not paused
	Groups []inspect.RetryGroup `json:"retrying,omitempty"`
}

// Flow has the fleet's deliveries and refusals of a target, or of the targets that match a pattern.
type Flow struct {
	stats.TargetAnswer
	Limit int    `json:"limit_per_second,omitempty"` // maximum rate of each target, from DELAY_RATE
	Pause string `json:"paused,omitempty"`           // like Target.Pause
}

// Targets lists the targets with deliveries, refusals or pauses.
type Targets struct {
	Time        time.Time       `json:"time"`
	Flows       []Flow          `json:"flows"` // the busiest first, at most maxRows
	Targets     []*Target       `json:"targets"`
	Paused      []inspect.Pause `json:"paused"`
	SilentCount int             `json:"silent,omitempty"` // number of instances without an authenticated report of targets
}

func (p *Page) targets(ctx context.Context, i *inspect.Inspector, _ url.Values) (any, error) {
	members, err := i.Fleet(ctx, broker.QueryOptions{Targets: true, Except: p.cfg.Engine.Instance()})
	if err != nil {
		return nil, err
	}
	paused, err := i.Pauses(ctx)
	if err != nil && !errors.Is(err, inspect.ErrNoPauses) {
		return nil, err
	}
	r, err := i.Retrying(ctx, inspect.RetryQuery{MaxRead: maxRead, Progress: func(uint64, uint64) {}})
	if err != nil {
		return nil, err
	}
	t := Targets{Time: r.Time, Targets: p.retryingTargets(r, paused), Paused: append([]inspect.Pause{}, paused...)}
	t.Flows, t.SilentCount = p.flows(members, paused)
	return answer{shell{"pause"}.String(), t}, nil
}

// flows returns the sums of the reports of all instances, and the number of instances without an authenticated report
// of targets.
func (p *Page) flows(members []inspect.Member, paused []inspect.Pause) (flows []Flow, silent int) {
	reports, own := [][]stats.TargetAnswer{p.cfg.Engine.Targets()}, p.cfg.Engine.Instance()
	for _, m := range members {
		switch {
		case m.Instance == own: // the engine's own numbers are newer
		case !m.Proven || m.Targets == nil:
			silent++
		default:
			reports = append(reports, m.Targets)
		}
	}
	flows = []Flow{}
	for _, t := range stats.AddTargets(reports...) {
		if len(flows) == maxRows {
			break
		}
		flow := Flow{TargetAnswer: t, Pause: pauseOf(t.Target, paused)}
		for _, rule := range p.cfg.Rates {
			if rule.Pattern == t.Rate {
				flow.Limit = rule.Value
				break
			}
		}
		flows = append(flows, flow)
	}
	return flows, silent
}

// retryingTargets returns the targets of the messages in the retry lanes, at most maxRows.
func (p *Page) retryingTargets(r inspect.RetryReport, paused []inspect.Pause) []*Target {
	targets, byName := []*Target{}, make(map[string]*Target)
	for _, g := range r.Groups {
		t := byName[g.Target]
		if t == nil {
			if len(targets) == maxRows {
				break
			}
			t = &Target{Target: g.Target, Rate: p.rateOf(g.Target), Pause: pauseOf(g.Target, paused)}
			byName[g.Target], targets = t, append(targets, t)
		}
		t.Groups = append(t.Groups, *g)
	}
	return targets
}

// rateOf returns the maximum rate of a target, with the first pattern in DELAY_RATE that matches. It returns "" if no
// pattern matches.
func (p *Page) rateOf(target string) string {
	for _, rule := range p.cfg.Rates {
		if message.Match(rule.Pattern, target) {
			return fmt.Sprintf("%d/s (%s)", rule.Value, rule.Pattern)
		}
	}
	return ""
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
