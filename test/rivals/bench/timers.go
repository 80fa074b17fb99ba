package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// prepareTime is the time from the beginning of the cost measurement to the due time. A broker prepares firings in
	// this time.
	prepareTime = 2 * time.Second
	// maxCleanUp is the timeout of the wait for idle processes after the last arrival, in the scenario timers.
	maxCleanUp = 30 * time.Second
	// The load moves one in timersPerMove uncancelled timers.
	timersPerMove = 10
)

// cancelledTimers returns the number of cancelled timers. They have the last numbers.
func (p Plan) cancelledTimers() int { return p.Count * p.CancelPercent / 100 }

// movedTimers returns the number of moved timers. They have the first numbers.
func (p Plan) movedTimers() int {
	if p.Scenario != Timers {
		return 0
	}
	return (p.Count - p.cancelledTimers()) / timersPerMove
}

// setupTime returns an estimate of the time in which a slow machine sets all timers and requests half of the cancels.
func (p Plan) setupTime() time.Duration {
	const sets, requests = 5_000, 1_000 // per second, on a slow machine
	return time.Duration(p.Count)*time.Second/sets + time.Duration(p.cancelledTimers()/2)*time.Second/requests
}

// instants returns the number of rounds of recurring timers, and 1 in the other scenarios.
func (p Plan) instants() int {
	if p.Interval == 0 {
		return 1
	}
	return int(p.Duration / p.Interval)
}

// cron returns a cron expression with a round at each multiple of an interval that divides a minute.
func cron(every time.Duration) string {
	if every == time.Minute {
		return "0 * * * * *"
	}
	return fmt.Sprintf("*/%d * * * * *", int(every.Seconds()))
}

func (p Plan) checkTimers(problems *problems) {
	problems.checkRange("size", p.Size, MinSize, maxTimerSize)
	problems.addIf(slices.Contains(p.Sides, Pipeline), "beside %s: the pipeline has no timers; want %s", Pipeline,
		Scheduler)
	if p.Scenario == Timers {
		const maxCancel = 99 // per cent: the scenario measures the firing of the other timers
		problems.checkRange("cancel", p.CancelPercent, 0, maxCancel)
		problems.checkRange("timers", p.TimerRate, 0, maxRate)
		problems.checkRange("rate", p.Rate, 0, maxRate)
		if p.TimerRate > 0 {
			problems.checkRange("count of timers of the even phase", p.evenTimers(), 1, maxCount)
			problems.checkRange("count of plain messages", p.plainMessages(), 0, maxCount)
		}
		return
	}
	const minInterval = 5 * time.Second // a broker prepares, delivers and becomes idle within an interval
	switch {
	case p.Interval < minInterval || p.Interval%time.Second != 0 || time.Minute%p.Interval != 0:
		problems.addIf(true, "every %s: want 5s, 6s, 10s, 12s, 15s, 20s, 30s or 1m, which divide a minute", p.Interval)
	case p.Duration < p.Interval || p.Duration%p.Interval != 0:
		problems.addIf(true, "for %s: want a multiple of every (%s)", p.Duration, p.Interval)
	default:
		problems.checkRange("count of all rounds", p.Count*p.instants(), 1, maxCount)
	}
}

func (p Plan) evenTimers() int    { return int(p.Duration.Seconds() * float64(p.TimerRate)) }
func (p Plan) plainMessages() int { return int(p.Duration.Seconds() * float64(p.Rate)) }

// timers sets timers, cancels some, and moves some. Then it measures the lateness and the cost of the uncancelled
// timers, which have the same due time.
func (t *turn) timers(ctx context.Context) (result Result, err error) {
	due := t.serverTime().Add(t.plan.dueAfter()).Truncate(time.Millisecond)
	if result, err = t.setAndChange(ctx, due); err != nil {
		return Result{}, err
	}
	if err := t.sleepUntil(ctx, due.Add(-prepareTime)); err != nil {
		return Result{}, err
	}
	start, err := t.usage()
	if err != nil {
		return Result{}, err
	}
	remaining := t.plan.Count - t.plan.cancelledTimers()
	ledger, err := t.await(ctx, Wait{Target: t.target, Count: remaining, Due: due, Complete: func() (err error) {
		result.Cost, err = t.costWhenIdle(ctx, start, remaining, time.Now().Add(maxCleanUp))
		return err
	}})
	if err != nil {
		return Result{}, err
	}
	if result, err = t.plan.addLedger(result, ledger); err == nil && t.plan.TimerRate > 0 {
		err = t.evenPhase(ctx, &result)
	}
	return result, err
}

// setAndChange sets all timers, and then cancels some and moves some. For a broker, half of the cancels are requests.
func (t *turn) setAndChange(ctx context.Context, due time.Time) (result Result, err error) {
	set := t.load(t.side, due)
	set.Verb, set.Rate, set.Postponed = Set, 0, t.plan.movedTimers()
	loaded, err := t.publish(ctx, set)
	if err != nil {
		return Result{}, err
	}
	result.Published, result.Acks, result.Timers = loaded.Rate, loaded.Acks, new(Phases)
	remaining, published := t.plan.Count-t.plan.cancelledTimers(), t.plan.cancelledTimers()
	if t.side == Broker {
		published -= published / 2
	}
	for _, phase := range []struct {
		verb       Verb
		first, end int
		rate       *float64
	}{
		{Cancel, remaining, remaining + published, &result.Timers.Cancelled},
		{RequestCancel, remaining + published, t.plan.Count, &result.Timers.Requested},
		{Move, 0, t.plan.movedTimers(), &result.Timers.Moved},
	} {
		if phase.first == phase.end {
			continue
		}
		l := set
		l.Verb, l.First, l.Count, l.Sequences = phase.verb, phase.first, phase.end-phase.first,
			loaded.Sequences[phase.first:phase.end]
		changed, err := t.publish(ctx, l)
		if err != nil {
			return Result{}, err
		}
		*phase.rate, loaded.LastAnswer = changed.Rate, changed.LastAnswer
	}
	return result, checkPublished(loaded, due, "a longer --delay")
}

// evenPhase measures timers that are due at even intervals, together with plain messages. The timers have the first
// numbers.
func (t *turn) evenPhase(ctx context.Context, result *Result) error {
	const margin, sets, delay = 3 * time.Second, 5_000, time.Second // a slow machine sets 5,000 timers per second
	timers, plainCount := t.plan.evenTimers(), t.plan.plainMessages()
	t.turnNumber++
	target := t.target.(StreamTarget) // no plain subscribers in this scenario
	if err := target.Stream.Purge(ctx); err != nil {
		return fmt.Errorf("purge the target: %w", err)
	}
	info, err := target.Stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("read the state of the target: %w", err)
	}
	target.OtherMessages = int(info.State.LastSeq)
	if t.side == Scheduler {
		target.OtherMessages += timers + plainCount
	}
	t.target = target
	due := t.serverTime().Add(margin + time.Duration(timers)*time.Second/sets).Truncate(time.Millisecond)
	set := t.load(t.side, due)
	set.Verb, set.Rate, set.Count, set.Step = Set, 0, timers, time.Second/time.Duration(t.plan.TimerRate)
	loaded, err := t.publish(ctx, set)
	if err == nil {
		err = checkPublished(loaded, due, "fewer --timers")
	}
	if err != nil {
		return err
	}
	if plainCount > 0 {
		if err := t.sleepUntil(ctx, due.Add(-delay)); err != nil {
			return err
		}
		l := t.load(t.side, time.Time{})
		l.First, l.Count, l.Delays = timers, plainCount, []Delay{{Duration: delay}}
		if _, err = t.publish(ctx, l); err != nil {
			return err
		}
	}
	ledger, err := t.await(ctx, Wait{
		Target: target, Count: timers + plainCount, FirstPlain: timers, Due: due.Add(t.plan.Duration + delay),
	})
	if err != nil {
		return err
	}
	result.Tally.add(ledger.Tally())
	result.Timers.EvenLate, result.Timers.PlainLate = ledger.Late.Spread(), ledger.PlainLate.Spread()
	return nil
}

// sleepUntil sleeps until a time by the server's clock.
func (t *turn) sleepUntil(ctx context.Context, end time.Time) error {
	t.show("waiting for the due time")
	return sleep(ctx, end.Sub(t.serverTime()))
}

// costWhenIdle waits until the processes are idle, at most until end by the local clock, and returns the cost since
// start. After its deliveries, a broker still deletes entries.
func (t *turn) costWhenIdle(ctx context.Context, start usage, count int, end time.Time) (*Cost, error) {
	// The unit of CPU time in /proc is 10 ms, so maxCPU allows one unit.
	const interval, maxCPU = 500 * time.Millisecond, 15 * time.Millisecond
	t.show("waiting until the processes are idle")
	previous, err := t.usage()
	for err == nil && time.Now().Before(end) {
		if err = sleep(ctx, interval); err != nil {
			break
		}
		var current usage
		current, err = t.usage()
		if current.server.CPU+current.sidecar.CPU-previous.server.CPU-previous.sidecar.CPU < maxCPU {
			break
		}
		previous = current
	}
	if err != nil {
		return nil, err
	}
	return t.cost(start, count)
}
