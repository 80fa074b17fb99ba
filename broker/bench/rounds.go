package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// recur sets timers that recur at the same instants, and measures the lateness of each round. It sets them right after
// such an instant. So their first round is due at the next one.
func (g *ground) recur(ctx context.Context) (Result, error) {
	every, fires := g.plan.Every, g.plan.instants()
	begin := g.serverTime().Truncate(every).Add(every)
	if err := g.sleepUntil(ctx, begin); err != nil {
		return Result{}, err
	}
	first := begin.Add(every)
	set := g.load(g.side, first)
	set.Verb, set.Cron = Set, cron(every)
	loaded, err := g.publish(ctx, set)
	if err == nil {
		err = punctual(loaded, first, "fewer --count, or a longer --every")
	}
	if err == nil {
		err = g.sleepUntil(ctx, first.Add(-lead))
	}
	if err != nil {
		return Result{}, err
	}
	before, err := g.usage()
	if err != nil {
		return Result{}, err
	}
	result := Result{Published: loaded.Rate, Acks: loaded.Acks}
	count, last := g.plan.Count*fires, first.Add(time.Duration(fires-1)*every)
	g.target = rounds{g.target.(Stored), g.plan.Count, fires, every} // no plain subscribers in this scenario
	ledger, err := g.await(ctx, Wait{Target: g.target, Count: count, Due: last, Whole: func() (err error) {
		next := last.Add(every - lead).Add(-g.report.Clock)
		result.Cost, err = g.costAtRest(ctx, before, count, next)
		return err
	}})
	if err != nil {
		return Result{}, err
	}
	return g.plan.judge(result, ledger)
}

// rounds is a stream in which timers arrive repeatedly. A missed round is lost.
type rounds struct {
	Stored
	count int // of timers
	fires int // counted rounds of each timer; the run does not wait for later ones
	every time.Duration
}

// Arrived returns the number of arrivals. It returns at most the number that the run waits for, since later rounds
// arrive too.
func (r rounds) Arrived(ctx context.Context) (int, error) {
	n, err := r.Stored.Arrived(ctx)
	return min(n, r.count*r.fires), err
}

// Note adds the arrivals. A round's number is the timer's number plus the round times the number of timers.
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
		l.hear(turn, stamp, ours, Arrival{At: stored, Promised: promised(m.Headers())})
	})
}

// next changes a stamp to that of a round, counted from zero. Over is true for a round after the last counted one.
func (r rounds) next(s *Stamp, round int) (over bool) {
	if round >= r.fires {
		return true
	}
	if int(s.Number) < r.count { // otherwise it is unknown
		s.Number += uint32(round * r.count)
	} else {
		s.Number = uint32(r.count * r.fires)
	}
	s.Due = s.Due.Add(time.Duration(round) * r.every)
	return false
}
