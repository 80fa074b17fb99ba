//go:build linux

package fault

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/test/fault/history"
	"delaybroker/test/linear"
)

// rounds is the number of rounds of a player's series, every is the interval, and retimed is the interval after a
// change of the table.
const rounds, every, retimed = 4, time.Second, 2 * time.Second

// playSeries sets a series, and lets one or two clients change it at about the due time of a round, for about half of
// the rounds. The series also fires missed rounds, so each round must arrive unless a client stops the series.
func (p *player) playSeries() {
	r := p.next()
	start := time.Now()
	g := r.setSeries(0)
	for n := range rounds {
		due := start.Add(time.Duration(n+1) * every)
		if p.rand.IntN(2) == 0 {
			time.Sleep(time.Until(due.Add(every / 2)))
			continue
		}
		g = p.race(1+p.rand.IntN(2), due, g, 11, r.change)
	}
	if r.paused {
		r.stop()
	}
}

// change makes at most one request about a series, or pauses and resumes it. It returns the generation that the client
// learned, or zero.
func (r *playedTimer) change(choice int, g uint64) uint64 {
	const soon = 30 * time.Millisecond
	expects := int64(g)
	if g == 0 {
		expects = linear.AnyPending
	}
	switch choice {
	case 0:
		r.publish(linear.Cancel, linear.AnyState, 0)
	case 1:
		if g > 0 {
			r.publish(linear.Cancel, expects, 0)
		}
	case 2:
		r.ask(timer.Cancel, linear.Cancel, expects, 0)
	case 3:
		return r.setSeries(linear.AnyState)
	case 4, 5:
		r.mu.Lock()
		r.paused = true
		r.mu.Unlock()
		r.ask(timer.Pause, linear.Pause, linear.AnyPending, 0)
		time.Sleep(every / 2)
		return r.ask(timer.Resume, linear.Move, linear.AnyPending, 0)
	case 6:
		return r.ask(timer.Move, linear.Move, expects, soon)
	case 7:
		return r.ask(timer.Move, linear.Move, linear.AnyPending, soon)
	case 8:
		return r.ask(timer.Retime, linear.Retime, linear.AnyPending, 0)
	default:
		r.ask(timer.Fire, history.ExtraFiring, linear.AnyPending, 0)
	}
	return 0
}

func (r *playedTimer) setSeries(expects int64) uint64 {
	e := r.begin(linear.Set, expects, every)
	e.Timer.Every, e.Timer.Rounds = every, rounds
	return r.publishEvent(e)
}

func setRecurrence(h nats.Header, of *history.TimerOp) {
	h.Set(message.HeaderEvery, of.Every.String())
	h.Set(message.HeaderRounds, strconv.Itoa(of.Rounds))
	h.Set(message.HeaderMissed, "all")
}

// stop cancels a series that may be paused, because a paused series would never end. It repeats the request until the
// stream acknowledges it, for at most timeout. The repetitions count as one request, because no other client uses the
// key.
func (r *playedTimer) stop() {
	e := r.begin(linear.Cancel, linear.AnyState, 0)
	m := &nats.Msg{Subject: "delaytimer." + r.key + "." + timersTarget, Header: nats.Header{message.HeaderCancel: {"x"}}}
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), ackWait)
		ack, err := r.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		cancel()
		if err == nil && ack.Stream == timers && !ack.Duplicate {
			r.end(e, linear.Done, ack.Sequence)
			return
		}
	}
	r.end(e, linear.Unknown, 0)
}
