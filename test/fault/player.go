//go:build linux

package fault

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	random "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/test/fault/history"
	"delaybroker/test/linear"
)

const timersTarget = "orders.timers"

// player sets named timers. Up to three clients cancel, move and replace each timer at about its due time. Some clients
// publish, the others send requests to the brokers. One timer in three is a series (playSeries), unless the player is
// immediate.
type player struct {
	name      string
	log       *history.Log
	nc        *nats.Conn
	js        jetstream.JetStream
	rand      *random.Rand
	immediate bool // sets only timers that are due within 60 ms, as many as possible
	count     int
}

func newPlayer(name string, nc *nats.Conn, w *world, seed uint64) (*player, error) {
	js, err := jetstream.New(nc)
	return &player{
		name: name, log: w.log, nc: nc, js: js, rand: random.New(random.NewPCG(seed, 4)), immediate: w.plan.races,
	}, err
}

// run sets timers until stop is closed.
func (p *player) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if !p.immediate && p.rand.IntN(3) == 0 {
			p.playSeries()
		} else {
			p.play()
		}
	}
}

// playedTimer is one timer of a player, with the requests of its clients.
type playedTimer struct {
	*player
	key string

	mu     sync.Mutex // guards the fields below
	bodies int
	paused bool // a client may have paused the series
}

func (p *player) next() *playedTimer {
	r := &playedTimer{player: p, key: fmt.Sprintf("%s-%d", p.name, p.count)}
	p.count++
	return r
}

// play sets a timer and lets clients change it. Soon after that, when a moved timer is due, clients change it again. A
// client that knows no generation sets the timer, whatever the timer's generation is.
func (p *player) play() {
	r := p.next()
	wait := 60 * time.Millisecond
	if !p.immediate {
		wait = []time.Duration{wait, 700 * time.Millisecond, 2200 * time.Millisecond, 3 * time.Second}[p.rand.IntN(4)]
	}
	due := time.Now().Add(wait)
	g := r.publish(linear.Set, 0, wait)
	for range 2 {
		g = p.race(1+p.rand.IntN(3), due, g, 8, r.makeRequest)
		due = time.Now().Add(30 * time.Millisecond)
	}
}

// race lets some clients change a timer within 5 ms of its due time. Each client chooses a request, with or without an
// expected generation. race returns the latest generation that a client knows.
func (p *player) race(clients int, due time.Time, g uint64, choices int, one func(choice int, g uint64) uint64) uint64 {
	told := make([]uint64, clients)
	var racing sync.WaitGroup
	for i := range told {
		at := due.Add(time.Duration(p.rand.IntN(11)-5) * time.Millisecond)
		choice := p.rand.IntN(choices)
		racing.Go(func() {
			time.Sleep(time.Until(at))
			told[i] = one(choice, g)
		})
	}
	racing.Wait()
	return max(g, slices.Max(told))
}

// makeRequest makes one request about a generation. It returns the new generation, or zero if the client does not learn
// it.
func (r *playedTimer) makeRequest(choice int, g uint64) uint64 {
	const soon = 30 * time.Millisecond
	expects := int64(g)
	if g == 0 {
		expects, choice = linear.AnyState, 3
	}
	switch choice {
	case 0:
		r.publish(linear.Cancel, expects, 0)
	case 1:
		return r.publish(linear.Set, expects, soon)
	case 2:
		r.publish(linear.Set, expects, 0)
	case 3:
		return r.publish(linear.Set, linear.AnyState, soon)
	case 4:
		r.publish(linear.Set, 0, soon)
	case 5:
		r.ask(timer.Cancel, linear.Cancel, expects, 0)
	case 6:
		return r.ask(timer.Move, linear.Set, expects, soon)
	case 7:
		r.ask(timer.Fire, linear.Set, expects, 0)
	}
	return 0
}

// begin returns the event of a request, to be recorded when the request ends.
func (r *playedTimer) begin(kind linear.Kind, expects int64, wait time.Duration) history.Event {
	return history.Event{
		Op: history.Timer, ID: r.key, Target: timersTarget, Delay: wait,
		Timer: &history.TimerOp{Kind: kind, Expects: expects, Call: time.Now().UnixNano()},
	}
}

// end records a request with its result, and returns the sequence.
func (r *playedTimer) end(e history.Event, is linear.Result, sequence uint64) uint64 {
	e.Timer.Result, e.Sequence = is, sequence
	r.log.Add(e)
	return sequence
}

// publish makes a request by a publish, without a broker.
func (r *playedTimer) publish(kind linear.Kind, expects int64, wait time.Duration) uint64 {
	return r.publishEvent(r.begin(kind, expects, wait))
}

// publishEvent publishes a request that has begun.
func (r *playedTimer) publishEvent(e history.Event) uint64 {
	kind, expects := e.Timer.Kind, e.Timer.Expects
	e.Subject = "delaytimer." + r.key + "." + timersTarget
	m, word := &nats.Msg{Subject: e.Subject, Header: nats.Header{}}, rand.Text()
	if expects >= 0 {
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatInt(expects, 10))
	}
	if kind == linear.Cancel {
		m.Header.Set(message.HeaderCancel, word)
	} else {
		r.mu.Lock()
		e.Timer.Body = fmt.Sprintf("%s.%d", r.key, r.bodies)
		r.bodies++
		r.mu.Unlock()
		m.Data = []byte(e.Timer.Body + ":" + strings.Repeat("x", 50))
		e.Sum = sum(m.Data, r.name)
		m.Header.Set(sumHeader, r.name)
		m.Header.Set(message.HeaderWord, word)
		if e.Timer.Rounds > 0 {
			setRecurrence(m.Header, e.Timer)
		} else {
			m.Header.Set("Delay-For", fmt.Sprintf("%dms", e.Delay.Milliseconds()))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), ackWait)
	defer cancel()
	ack, err := r.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	api := (*jetstream.APIError)(nil)
	switch {
	case errors.Is(err, nats.ErrReconnectBufExceeded): // nats.go did not send the publish
		time.Sleep(20 * time.Millisecond)
		return 0
	// Another message of the subject is being stored. A leader that was paused may answer so and store the entry.
	case errors.As(err, &api) && api.ErrorCode == 10164:
		return r.end(e, linear.Unknown, 0)
	case errors.As(err, &api) && api.ErrorCode == 10071:
		is, sequence := r.readOutcome(e, word)
		return r.end(e, is, sequence)
	case err != nil || ack.Duplicate || ack.Stream != timers:
		return r.end(e, linear.Unknown, 0)
	}
	return r.end(e, linear.Done, ack.Sequence)
}

// readOutcome returns the result of a request that a server refused with 10071. A deposed leader may refuse a request
// that the next leader stores, so readOutcome reads the last entry of the subject.
func (r *playedTimer) readOutcome(e history.Event, word string) (linear.Result, uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), ackWait)
	defer cancel()
	m, err := jsapi.Client{Conn: r.nc, API: "$JS.API"}.Last(ctx, timers, e.Subject)
	if err != nil || m.Subject != e.Subject {
		return linear.Unknown, 0
	}
	h, err := m.Header()
	if err != nil {
		return linear.Unknown, 0
	}
	sequence := m.Sequence
	decided, _, fired := strings.Cut(h.Get(message.HeaderFired)+h.Get(message.HeaderOver), " ")
	if fired {
		if sequence, err = strconv.ParseUint(decided, 10, 64); err != nil {
			return linear.Unknown, 0
		}
	}
	switch {
	case h.Get(message.HeaderCancel) == word, h.Get(message.HeaderWord) == word:
		return linear.Done, sequence
	case fired && int64(sequence) == e.Timer.Expects:
		return linear.Refused, 0
	}
	return linear.Unknown, 0
}

// ask sends a request to a broker. It returns the sequence in the answer, or zero.
func (r *playedTimer) ask(verb timer.Verb, kind linear.Kind, expects int64, wait time.Duration) uint64 {
	e := r.begin(kind, expects, wait)
	asked := map[string]any{}
	if expects > 0 {
		asked["generation"] = expects
	}
	switch verb {
	case timer.Move:
		asked["in"] = fmt.Sprintf("%dms", wait.Milliseconds())
	case timer.Retime:
		asked["every"], asked["rounds"], asked["missed"] = retimed.String(), rounds, "all"
	}
	return r.request(e, verb, asked)
}

// request sends a request to a broker, and records the answer. It records neither a request that no broker received,
// nor one that a broker answered with an error.
func (r *playedTimer) request(e history.Event, verb timer.Verb, asked map[string]any) uint64 {
	e.Subject = fmt.Sprintf("delayctl.timer.%s.%s.%s", verb, r.key, timersTarget)
	body, err := json.Marshal(asked)
	if err != nil {
		panic(err) // cannot happen: the values are numbers and strings
	}
	ctx, cancel := context.WithTimeout(context.Background(), ackWait)
	defer cancel()
	m, err := r.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: e.Subject, Data: body})
	var answer struct {
		Outcome    timer.Outcome
		Generation uint64
	}
	switch {
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrNoResponders):
		return 0 // no broker received it
	case err != nil:
		return r.end(e, linear.Unknown, 0)
	case m.Header.Get("Nats-Service-Error") != "": // the request had no effect
		return 0
	case json.Unmarshal(m.Data, &answer) != nil, answer.Outcome == timer.Unknown:
		return r.end(e, linear.Unknown, 0)
	case answer.Outcome == timer.Cancelled:
		return r.end(e, linear.Done, 0)
	case verb == timer.Fire && e.Timer.Kind != linear.Set && answer.Outcome == timer.Fired:
		return r.end(e, linear.Done, 0)
	case answer.Outcome == timer.Moved, answer.Outcome == timer.Fired, answer.Outcome == timer.Paused,
		verb == timer.Resume && answer.Outcome == timer.Pending:
		return r.end(e, linear.Done, answer.Generation)
	}
	return r.end(e, linear.Refused, 0)
}
