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
	Rate   string               `json:"rate,omitempty"` // messages a second, and the pattern that sets it
	Paused string               `json:"paused,omitempty"`
	Groups []inspect.RetryGroup `json:"retrying,omitempty"`
}

// Flow is the fleet's rate of deliveries to a target, or to the targets of a pattern.
type Flow struct {
	stats.TargetAnswer
	Limit  int    `json:"limit_per_second,omitempty"` // of each target, by DELAY_RATE
	Paused string `json:"paused,omitempty"`
}

// Targets lists the targets with refusals, deliveries or pauses.
type Targets struct {
	Time    time.Time       `json:"time"`
	Flows   []Flow          `json:"flows"` // the busiest first
	Targets []*Target       `json:"targets"`
	Paused  []inspect.Pause `json:"paused"`
	Silent  int             `json:"silent,omitempty"` // instances without an authenticated report of their deliveries
}

// targets shows deliveries, refusals and pauses by target.
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
	all := Targets{Time: r.Time, Targets: p.refusing(r, paused), Paused: append([]inspect.Pause{}, paused...)}
	all.Flows, all.Silent = p.flows(members, paused)
	return answer{shell{"pause"}.String(), all}, nil
}

// flows returns the sums of the deliveries of all instances, and the number of instances without a proven report.
func (p *Page) flows(members []inspect.Member, paused []inspect.Pause) (flows []Flow, silent int) {
	reports, own := [][]stats.TargetAnswer{p.cfg.Engine.Targets()}, p.cfg.Engine.Instance()
	for _, m := range members {
		switch {
		case m.Instance == own: // the engine has newer numbers
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
		flow := Flow{TargetAnswer: t, Paused: pauseOf(t.Target, paused)}
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

// refusing returns the targets of the messages in the retry lanes, at most maxRows.
func (p *Page) refusing(r inspect.RetryReport, paused []inspect.Pause) []*Target {
	all, byName := []*Target{}, make(map[string]*Target)
	for _, g := range r.Groups {
		t := byName[g.Target]
		if t == nil {
			if len(all) == maxRows {
				break
			}
			t = &Target{Target: g.Target, Rate: p.rateOf(g.Target), Paused: pauseOf(g.Target, paused)}
			byName[g.Target], all = t, append(all, t)
		}
		t.Groups = append(t.Groups, *g)
	}
	return all
}

// rateOf returns the rate of a target, by the first pattern that matches.
func (p *Page) rateOf(target string) string {
	for _, rule := range p.cfg.Rates {
		if message.Match(rule.Pattern, target) {
			return fmt.Sprintf("%d/s (%s)", rule.Value, rule.Pattern)
		}
	}
	return ""
}

// pauseOf returns the first pause that concerns a target, or the targets of a pattern.
func pauseOf(target string, paused []inspect.Pause) string {
	for _, one := range paused {
		switch {
		case covers(one.Pattern, target):
			return fmt.Sprintf("%s (%s)", one.State, one.Pattern)
		case message.Overlap(one.Pattern, target):
			return fmt.Sprintf("%s in part (%s)", one.State, one.Pattern)
		}
	}
	return ""
}

// covers reports whether a pattern matches all subjects that another pattern matches.
func covers(pattern, other string) bool {
	start, open := strings.CutSuffix(other, ">")
	const unlike = "\x00" // a token that no pattern has
	return message.Match(pattern, start+unlike) && message.Match(pattern, start+unlike+"."+unlike) ||
		!open && message.Match(pattern, other)
}
