package bench

import (
	"context"
	"fmt"
	"time"
)

// flow publishes the load, waits until everything has arrived, and measures the lateness.
func (g *ground) flow(ctx context.Context) (result Result, err error) {
	passes, _, err := g.lanes(ctx)
	if err != nil {
		return Result{}, err
	}
	before, err := g.usage()
	if err != nil {
		return Result{}, err
	}
	var due time.Time
	if g.plan.Scenario.oneInstant() {
		due = g.serverTime().Add(g.plan.ahead()).Truncate(time.Millisecond) // a broker's subject has milliseconds
	}
	loaded, err := g.publish(ctx, g.load(g.side, due))
	if err != nil {
		return Result{}, err
	}
	if !due.IsZero() {
		if err := punctual(loaded, due, "a longer --delay"); err != nil {
			return Result{}, err
		}
	}
	ledger, cost, err := g.collect(ctx, before, loaded.Last.Add(g.plan.longest()))
	if err != nil {
		return Result{}, err
	}
	result.Cost, result.Published, result.Acks = cost, loaded.Rate, loaded.Acks
	after, dead, err := g.lanes(ctx)
	if err != nil {
		return Result{}, err
	}
	result.Passes, result.Dead = float64(after-passes)/float64(g.plan.Count), dead
	return g.plan.judge(result, ledger)
}

// collect waits for all messages and returns the ledger and the cost.
func (g *ground) collect(ctx context.Context, before usage, due time.Time) (l *Ledger, cost *Cost, err error) {
	w := Wait{Target: g.target, Count: g.plan.Count, Due: due, Whole: func() (err error) {
		cost, err = g.cost(before, g.plan.Count)
		return err
	}}
	l, err = g.await(ctx, w)
	return l, cost, err
}

// await returns the ledger of a wait in this turn. The due time of w is by the server's clock.
func (g *ground) await(ctx context.Context, w Wait) (*Ledger, error) {
	w.Turn, w.Due, w.Within = g.turn, w.Due.Add(-g.report.Clock), g.report.ClockWithin
	w.Arrived = func(n int) {
		g.now.Arrived = n
		g.show("waiting for the last")
	}
	return w.Ledger(ctx)
}

// punctual returns an error if the last message was accepted after its due time.
func punctual(loaded Loaded, due time.Time, change string) error {
	if late := loaded.Last.Sub(due); late > 0 {
		return fmt.Errorf("%w: the last message was accepted %s after the due time; use %s",
			ErrSlow, late.Round(time.Millisecond), change)
	}
	return nil
}

// judge adds the results of a ledger.
func (p Plan) judge(result Result, l *Ledger) (_ Result, err error) {
	result.Tally = l.Tally()
	result.Late, result.Promised = l.Late.Spread(), l.Promised.Spread()
	if result.Histogram, err = l.Late.Encode(); err != nil {
		return Result{}, fmt.Errorf("encode the histogram: %w", err)
	}
	if p.Scenario.paced() {
		result.Arrived = l.Rate()
	}
	if p.Scenario.oneInstant() && result.Late != nil && result.Late.Max > 0 {
		result.Drained = float64(l.Arrived()) / float64(p.instants()) / (result.Late.Max / 1000)
	}
	return result, nil
}

// lanes returns the number of messages that the broker's lanes have ever stored, and the number of dead letters. Both
// are zero for other sides.
func (g *ground) lanes(ctx context.Context) (stored, dead int, err error) {
	if g.side != Broker {
		return 0, 0, nil
	}
	all, _, err := g.site.list(ctx)
	if err != nil {
		return 0, 0, err
	}
	names := g.site.names
	for _, info := range all {
		switch name := info.Config.Name; {
		case name == names.broker.DeadStream():
			dead = int(info.State.Msgs)
		case name != names.broker.OwnersStream() && names.broker.Own(name):
			stored += int(info.State.LastSeq)
		}
	}
	return stored, dead, nil
}
