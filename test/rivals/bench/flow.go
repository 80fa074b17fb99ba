package bench

import (
	"context"
	"fmt"
	"time"
)

// flow publishes the load, waits for the messages, and measures their lateness.
func (t *turn) flow(ctx context.Context) (result Result, err error) {
	storedBefore, _, err := t.laneTotals(ctx)
	if err != nil {
		return Result{}, err
	}
	start, err := t.usage()
	if err != nil {
		return Result{}, err
	}
	var due time.Time
	if t.plan.Scenario.oneInstant() {
		// The time in a broker's subject is in milliseconds.
		due = t.serverTime().Add(t.plan.dueAfter()).Truncate(time.Millisecond)
	}
	loaded, err := t.publish(ctx, t.load(t.side, due))
	if err != nil {
		return Result{}, err
	}
	if !due.IsZero() {
		if err := checkPublished(loaded, due, "a longer --delay"); err != nil {
			return Result{}, err
		}
	}
	ledger, cost, err := t.collect(ctx, start, loaded.LastAnswer.Add(t.plan.maxDelay()))
	if err != nil {
		return Result{}, err
	}
	result.Cost, result.Published, result.Acks = cost, loaded.Rate, loaded.Acks
	stored, dead, err := t.laneTotals(ctx)
	if err != nil {
		return Result{}, err
	}
	result.Passes, result.Dead = float64(stored-storedBefore)/float64(t.plan.Count), dead
	return t.plan.addLedger(result, ledger)
}

// collect waits for the messages. It returns the ledger, and the cost since start. Due is a time by the server's clock.
func (t *turn) collect(ctx context.Context, start usage, due time.Time) (l *Ledger, cost *Cost, err error) {
	w := Wait{Target: t.target, Count: t.plan.Count, Due: due, Complete: func() (err error) {
		cost, err = t.cost(start, t.plan.Count)
		return err
	}}
	l, err = t.await(ctx, w)
	return l, cost, err
}

// await waits for the messages of this turn and returns the ledger. W.Due is a time by the server's clock.
func (t *turn) await(ctx context.Context, w Wait) (*Ledger, error) {
	w.Turn, w.Due, w.ClockError = t.turnNumber, w.Due.Add(-t.report.Clock), t.report.ClockError
	w.Arrived = func(n int) {
		t.progress.Arrived = n
		t.show("waiting for the last messages")
	}
	return w.Ledger(ctx)
}

// checkPublished returns an ErrSlow with the remedy if the last message was accepted after the due time.
func checkPublished(loaded LoadResult, due time.Time, remedy string) error {
	if late := loaded.LastAnswer.Sub(due); late > 0 {
		return fmt.Errorf("%w: the last message was accepted %s after the due time; use %s",
			ErrSlow, late.Round(time.Millisecond), remedy)
	}
	return nil
}

func (p Plan) addLedger(result Result, l *Ledger) (_ Result, err error) {
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

// laneTotals returns the number of messages that the broker's streams have ever stored, without the streams of owners
// and dead letters, and the number of dead letters. For the other sides, both numbers are zero.
func (t *turn) laneTotals(ctx context.Context) (stored, dead int, err error) {
	if t.side != Broker {
		return 0, 0, nil
	}
	infos, _, err := t.site.list(ctx)
	if err != nil {
		return 0, 0, err
	}
	names := t.site.names
	for _, info := range infos {
		switch name := info.Config.Name; {
		case name == names.broker.DeadStream():
			dead = int(info.State.Msgs)
		case name != names.broker.OwnersStream() && names.broker.OwnsStream(name):
			stored += int(info.State.LastSeq)
		}
	}
	return stored, dead, nil
}
