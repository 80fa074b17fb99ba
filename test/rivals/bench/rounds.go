package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// recurringTimers sets timers with the same rounds, and measures the lateness of these rounds. It sets the timers right
// after a multiple of the interval, so their first round is due at the next multiple.
func (t *turn) recurringTimers(ctx context.Context) (Result, error) {
	interval, rounds := t.plan.Interval, t.plan.instants()
	begin := t.serverTime().Truncate(interval).Add(interval)
	if err := t.sleepUntil(ctx, begin); err != nil {
		return Result{}, err
	}
	first := begin.Add(interval)
	set := t.load(t.side, first)
	set.Verb, set.Cron = Set, cron(interval)
	loaded, err := t.publish(ctx, set)
	if err == nil {
		err = checkPublished(loaded, first, "a smaller --count, or a longer --every")
	}
	if err == nil {
		err = t.sleepUntil(ctx, first.Add(-prepareTime))
	}
	if err != nil {
		return Result{}, err
	}
	start, err := t.usage()
	if err != nil {
		return Result{}, err
	}
	result := Result{Published: loaded.Rate, Acks: loaded.Acks}
	count, last := t.plan.Count*rounds, first.Add(time.Duration(rounds-1)*interval)
	streamTarget := t.target.(StreamTarget) // this scenario has no plain subscribers
	t.target = recurringTarget{streamTarget, t.plan.Count, rounds, interval}
	ledger, err := t.await(ctx, Wait{Target: t.target, Count: count, Due: last, Complete: func() (err error) {
		end := last.Add(interval - prepareTime).Add(-t.report.Clock)
		result.Cost, err = t.costWhenIdle(ctx, start, count, end)
		return err
	}})
	if err != nil {
		return Result{}, err
	}
	return t.plan.addLedger(result, ledger)
}

// recurringTarget is the stream in which the messages of recurring timers arrive. In the ledger, each round of each
// timer has its own number: the timer's number + round * timers.
type recurringTarget struct {
	StreamTarget
	timers   int
	rounds   int // rounds of each timer that the run measures; later rounds are ignored
	interval time.Duration
}

// Arrived returns the number of arrivals of all rounds, but at most the number of measured rounds of all timers.
func (r recurringTarget) Arrived(ctx context.Context) (int, error) {
	n, err := r.StreamTarget.Arrived(ctx)
	return min(n, r.timers*r.rounds), err
}

// Note adds the arrivals of the measured rounds to the ledger.
func (r recurringTarget) Note(ctx context.Context, l *Ledger, turn uint32) error {
	firing := make(map[uint32]int)
	return ReadStream(ctx, r.Stream, r.Subject, func(m jetstream.Msg, stored time.Time) {
		stamp, stamped := ReadStamp(m.Data())
		round := firing[stamp.Number]
		if number, err := strconv.Atoi(m.Headers().Get(message.HeaderRound)); err == nil {
			round = number - 1
		}
		firing[stamp.Number]++
		stamp, measured := r.roundStamp(stamp, round)
		if stamped && !measured {
			return
		}
		l.addArrival(turn, stamp, stamped, Arrival{Time: stored, Promised: promisedTime(m.Headers())})
	})
}

// roundStamp returns the stamp of a round, from the stamp of the timer. Rounds are numbered from zero. Measured is
// false if the run does not measure this round.
func (r recurringTarget) roundStamp(stamp Stamp, round int) (_ Stamp, measured bool) {
	if int(stamp.Number) < r.timers {
		stamp.Number += uint32(round * r.timers)
	} else {
		stamp.Number = uint32(r.timers * r.rounds) // the ledger counts this number as unknown
	}
	stamp.Due = stamp.Due.Add(time.Duration(round) * r.interval)
	return stamp, round < r.rounds
}
