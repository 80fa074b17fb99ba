package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// lead is how long before the due time the run reads the CPU time. A broker does not prepare firings earlier.
	lead = 2 * time.Second
	// aftermath is the maximum time of a broker's work after the last arrival.
	aftermath = 30 * time.Second
	// One in movedShare of the kept timers is moved.
	movedShare = 10
)

// cancelled returns the number of cancelled timers. They are the last ones, so that the numbers of the others begin at
// zero.
func (p Plan) cancelled() int { return p.Count * p.Cancel / 100 }

// moved returns the number of moved timers. They are the first ones.
func (p Plan) moved() int {
	if p.Scenario != Timers {
		return 0
	}
	return (p.Count - p.cancelled()) / movedShare
}

// slowest returns the duration of the phases before the instant, on a slow machine.
func (p Plan) slowest() time.Duration {
	const sets, requests = 5_000, 1_000 // per second; a set includes its marker
	return time.Duration(p.Count)*time.Second/sets + time.Duration(p.cancelled()/2)*time.Second/requests
}

// instants returns the number of instants at which timers are due.
func (p Plan) instants() int {
	if p.Every == 0 {
		return 1
	}
	return int(p.For / p.Every)
}

// cron returns a cron with a round at each multiple of an interval, which divides a minute.
func cron(every time.Duration) string {
	if every == time.Minute {
		return "0 * * * * *"
	}
	return fmt.Sprintf("*/%d * * * * *", int(every.Seconds()))
}

// checkTimers checks the part of a plan about named timers.
func (p Plan) checkTimers(all *problems) {
	all.within("size", p.Size, MinSize, maxTimerSize)
	all.refuse(slices.Contains(p.Sides, Pipeline), "beside %s: the pipeline has no timers; want %s", Pipeline, Scheduler)
	if p.Scenario == Timers {
		const most = 99 // per cent: at least one timer fires
		all.within("cancel", p.Cancel, 0, most)
		all.within("timers", p.Timers, 0, maxRate)
		all.within("rate", p.Rate, 0, maxRate)
		if p.Timers > 0 {
			all.within("count of timers that are due evenly", p.evenTimers(), 1, maxCount)
			all.within("count of plain messages", p.plainMessages(), 0, maxCount)
		}
		return
	}
	const least = 5 * time.Second // a turn prepares, delivers and becomes idle within an interval
	switch {
	case p.Every < least || p.Every%time.Second != 0 || time.Minute%p.Every != 0:
		all.refuse(true, "every %s: want 5s, 6s, 10s, 12s, 15s, 20s, 30s or 1m, which divide a minute", p.Every)
	case p.For < p.Every || p.For%p.Every != 0:
		all.refuse(true, "for %s: want a multiple of every (%s)", p.For, p.Every)
	default:
		all.within("count of all rounds", p.Count*p.instants(), 1, maxCount)
	}
}

func (p Plan) evenTimers() int    { return int(p.For.Seconds() * float64(p.Timers)) }
func (p Plan) plainMessages() int { return int(p.For.Seconds() * float64(p.Rate)) }

// timers sets timers for one instant, cancels and moves some of them, and measures the lateness of the rest. Then it
// measures timers that are due one after the other, together with plain messages.
func (g *ground) timers(ctx context.Context) (result Result, err error) {
	due := g.serverTime().Add(g.plan.ahead()).Truncate(time.Millisecond)
	if result, err = g.change(ctx, due); err != nil {
		return Result{}, err
	}
	if err := g.sleepUntil(ctx, due.Add(-lead)); err != nil {
		return Result{}, err
	}
	before, err := g.usage()
	if err != nil {
		return Result{}, err
	}
	kept := g.plan.Count - g.plan.cancelled()
	ledger, err := g.await(ctx, Wait{Target: g.target, Count: kept, Due: due, Whole: func() (err error) {
		result.Cost, err = g.costAtRest(ctx, before, kept, time.Now().Add(aftermath))
		return err
	}})
	if err != nil {
		return Result{}, err
	}
	if result, err = g.plan.judge(result, ledger); err == nil && g.plan.Timers > 0 {
		err = g.even(ctx, &result)
	}
	return result, err
}

// change sets all timers, and cancels and moves some of them. Half of a broker's cancels are requests.
func (g *ground) change(ctx context.Context, due time.Time) (result Result, err error) {
	set := g.load(g.side, due)
	set.Verb, set.Rate, set.Postponed = Set, 0, g.plan.moved()
	all, err := g.publish(ctx, set)
	if err != nil {
		return Result{}, err
	}
	result.Published, result.Acks, result.Timers = all.Rate, all.Acks, new(Phases)
	kept, published := g.plan.Count-g.plan.cancelled(), g.plan.cancelled()
	if g.side == Broker {
		published -= published / 2
	}
	for _, phase := range []struct {
		verb       Verb
		first, end int
		rate       *float64
	}{
		{Cancel, kept, kept + published, &result.Timers.Cancelled},
		{Request, kept + published, g.plan.Count, &result.Timers.Requested},
		{Move, 0, g.plan.moved(), &result.Timers.Moved},
	} {
		if phase.first == phase.end {
			continue
		}
		l := set
		l.Verb, l.First, l.Count, l.Sequences = phase.verb, phase.first, phase.end-phase.first,
			all.Sequences[phase.first:phase.end]
		done, err := g.publish(ctx, l)
		if err != nil {
			return Result{}, err
		}
		*phase.rate, all.Last = done.Rate, done.Last
	}
	return result, punctual(all, due, "a longer --delay")
}

// even measures timers that are due one after the other, together with plain messages. The plain messages have the
// numbers after those of the timers.
func (g *ground) even(ctx context.Context, result *Result) error {
	const spare, slow, delay = 3 * time.Second, 5_000, time.Second // slow is in sets per second
	timers, plain := g.plan.evenTimers(), g.plan.plainMessages()
	g.turn++
	target := g.target.(Stored) // no plain subscribers in this scenario
	if err := target.Stream.Purge(ctx); err != nil {
		return fmt.Errorf("empty the target: %w", err)
	}
	info, err := target.Stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("read the state of the target: %w", err)
	}
	target.Others = int(info.State.LastSeq)
	if g.side == Scheduler {
		target.Others += timers + plain
	}
	g.target = target
	due := g.serverTime().Add(spare + time.Duration(timers)*time.Second/slow).Truncate(time.Millisecond)
	set := g.load(g.side, due)
	set.Verb, set.Rate, set.Count, set.Step = Set, 0, timers, time.Second/time.Duration(g.plan.Timers)
	loaded, err := g.publish(ctx, set)
	if err == nil {
		err = punctual(loaded, due, "fewer --timers")
	}
	if err != nil {
		return err
	}
	if plain > 0 {
		if err := g.sleepUntil(ctx, due.Add(-delay)); err != nil {
			return err
		}
		l := g.load(g.side, time.Time{})
		l.First, l.Count, l.Delays = timers, plain, []Delay{{Duration: delay}}
		if _, err = g.publish(ctx, l); err != nil {
			return err
		}
	}
	ledger, err := g.await(ctx, Wait{
		Target: target, Count: timers + plain, Plain: timers, Due: due.Add(g.plan.For + delay),
	})
	if err != nil {
		return err
	}
	result.Tally.add(ledger.Tally())
	result.Timers.Even, result.Timers.Plain = ledger.Late.Spread(), ledger.Beside.Spread()
	return nil
}

// sleepUntil sleeps until a time by the server's clock.
func (g *ground) sleepUntil(ctx context.Context, t time.Time) error {
	g.show("waiting for the instant")
	return sleep(ctx, t.Sub(g.serverTime()))
}

// costAtRest returns the cost when the processes are idle, but not after end. A broker deletes entries after its
// deliveries.
func (g *ground) costAtRest(ctx context.Context, before usage, count int, end time.Time) (*Cost, error) {
	const look, idle = 500 * time.Millisecond, 15 * time.Millisecond // idle is CPU time; /proc counts in 10 ms
	g.show("waiting until the processes are idle")
	was, err := g.usage()
	for err == nil && time.Now().Before(end) {
		if err = sleep(ctx, look); err != nil {
			break
		}
		var now usage
		now, err = g.usage()
		if now.server.CPU+now.sidecar.CPU-was.server.CPU-was.sidecar.CPU < idle {
			break
		}
		was = now
	}
	if err != nil {
		return nil, err
	}
	return g.cost(before, count)
}
