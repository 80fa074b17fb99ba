package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// recur sets timers that recur at the same times, and measures the lateness of each round. It sets the timers right
// after one of these times, so their first round is due at the next one.
func (t *turn) recur(ctx context.Context) (Result, error) {
	every, fires := t.plan.Interval, t.plan.instants()
	begin := t.serverTime().Truncate(every).Add(every)
	if err := t.sleepUntil(ctx, begin); err != nil {
		return Result{}, err
	}
	first := begin.Add(every)
	set := t.load(t.side, first)
	set.Verb, set.Cron = Set, cron(every)
	loaded, err := t.publish(ctx, set)
	if err == nil {
		err = checkPublished(loaded, first, "fewer --count, or a longer --every")
	}
	if err == nil {
		err = t.sleepUntil(ctx, first.Add(-prepareTime))
	}
	if err != nil {
		return Result{}, err
	}
	before, err := t.usage()
	if err != nil {
		return Result{}, err
	}
	result := Result{Published: loaded.Rate, Acks: loaded.Acks}
	count, last := t.plan.Count*fires, first.Add(time.Duration(fires-1)*every)
	t.target = rounds{t.target.(Stored), t.plan.Count, fires, every} // no plain subscribers in this scenario
	ledger, err := t.await(ctx, Wait{Target: t.target, Count: count, Due: last, Complete: func() (err error) {
		next := last.Add(every - prepareTime).Add(-t.report.Clock)
		result.Cost, err = t.costWhenIdle(ctx, before, count, next)
		return err
	}})
	if err != nil {
		return Result{}, err
	}
	return t.plan.addLedger(result, ledger)
}

// rounds is a stream as the target of recurring timers. A missed round counts as lost.
type rounds struct {
	Stored
	count int // of timers
	fires int // counted rounds of each timer; the run does not wait for later ones
	every time.Duration
}

// Arrived returns the number of arrivals, but at most the number that the run waits for: later rounds arrive too.
func (r rounds) Arrived(ctx context.Context) (int, error) {
	n, err := r.Stored.Arrived(ctx)
	return min(n, r.count*r.fires), err
}

// Note adds the arrivals. The ledger's number of a round is the timer's number plus the round times the number of
// timers.
func (r rounds) Note(ctx context.Context, l *Ledger, turn uint32) error {
	fired := make(map[uint32]int)
	return ReadStream(ctx, r.Stream, r.Subject, func(m jetstream.Msg, stored time.Time) {
		stamp, ours := ReadStamp(m.Data())
		round := fired[stamp.Number]
		if number, err := strconv.Atoi(m.Headers().Get(message.HeaderRound)); err == nil {
			round = number - 1
		}
		fired[stamp.Number]++
		if ours && r.next(&stamp, round) {
			return
		}
		l.addArrival(turn, stamp, ours, Arrival{At: stored, Promised: promised(m.Headers())})
	})
}

// next changes the stamp of a timer to that of its round. Rounds are numbered from zero. Over is true if the round is
// after the last counted round.
func (r rounds) next(s *Stamp, round int) (over bool) {
	if round >= r.fires {
		return true
	}
	if int(s.Number) < r.count {
		s.Number += uint32(round * r.count)
	} else {
		s.Number = uint32(r.count * r.fires) // the ledger counts this number as unknown
	}
	s.Due = s.Due.Add(time.Duration(round) * r.every)
	return false
}
