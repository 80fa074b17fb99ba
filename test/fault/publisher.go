//go:build linux

package fault

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/fault/history"
)

const (
	// ackWait is the timeout of an answer: a publisher records a publish without an answer as unknown.
	ackWait = 5 * time.Second
	// sumHeader is a header of the publishers, which the target must receive unchanged.
	sumHeader = "X-Origin"
)

// farOff is a delay that is longer than an outage of the brokers, so that its messages hop after the outage.
const farOff = 20 * time.Second

// publisher publishes delays on one connection, and records the answers.
type publisher struct {
	name string
	log  *history.Log
	js   jetstream.JetStream
	rand *rand.Rand

	gate   *gate
	ladder ladder

	accepted *atomic.Int64 // number of acknowledged publishes of all publishers, also of duplicates
	count    int
	answers  sync.WaitGroup
}

// gate keeps publishers and tenants off the intake while an administrator has closed the gate.
type gate struct {
	mu     sync.Mutex
	shut   bool
	inside sync.WaitGroup // publishes to the intake whose answer has not come
}

// enter reports whether the gate is open. If so, the caller must call inside.Done after the answer or its timeout.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		g.inside.Add(1)
	}
	return !g.shut
}

// close shuts the gate and waits until every publish to the intake has its answer or its timeout.
func (g *gate) close() {
	g.mu.Lock()
	g.shut = true
	g.mu.Unlock()
	g.inside.Wait()
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}

func newPublisher(name string, nc *nats.Conn, w *world, seed uint64) (*publisher, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(ackWait), jetstream.WithPublishAsyncMaxPending(1<<16))
	if err != nil {
		return nil, err
	}
	return &publisher{
		name: name, log: w.log, js: js, rand: rand.New(rand.NewPCG(seed, 3)), gate: &w.gate, ladder: w.plan.ladder,
		accepted: &w.accepted,
	}, nil
}

// run publishes at a rate until stop is closed. It returns when every publish has an answer or has timed out.
func (p *publisher) run(rate int, stop <-chan struct{}) {
	defer p.answers.Wait()
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			p.publishOne()
		}
	}
}

func (p *publisher) publishOne() {
	d := p.ladder.requests[p.rand.IntN(len(p.ladder.requests))]
	leave := func() {}
	if !p.ladder.direct(d) {
		if !p.gate.enter() {
			return
		}
		leave = p.gate.inside.Done
	}
	e := history.Event{Target: fmt.Sprintf("orders.%s.%d", p.name, p.rand.IntN(4))}
	if d.subject == "" {
		until := time.Now().Add(d.delay).Truncate(time.Millisecond)
		e.Until = until.UnixNano()
		e.Subject = fmt.Sprintf("delayat.%d.%s", until.UnixMilli(), e.Target)
	} else {
		e.Delay, e.Subject = d.delay, d.subject+"."+e.Target
	}
	p.publish(e, "", strings.Repeat("x", p.rand.IntN(300)), leave)
}

// publish sends one message and records its answer. It calls leave after the answer or the timeout.
func (p *publisher) publish(e history.Event, msgID, filler string, leave func()) {
	e.Op, e.Phase, e.ID = history.Publish, history.Invoke, fmt.Sprintf("%s-%d", p.name, p.count)
	p.count++
	m := &nats.Msg{Subject: e.Subject, Data: []byte(e.ID + ":" + filler), Header: nats.Header{sumHeader: {p.name}}}
	if msgID != "" {
		m.Header.Set(nats.MsgIdHdr, msgID)
	}
	e.Sum = sum(m.Data, p.name)
	p.log.Add(e)
	answer := history.Event{Op: history.Publish, ID: e.ID, Phase: history.Unknown}
	f, err := p.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	if err != nil {
		if errors.Is(err, nats.ErrReconnectBufExceeded) { // it was not sent
			answer.Phase = history.Fail
		}
		answer.Text = err.Error()
		p.log.Add(answer)
		leave()
		return
	}
	p.answers.Go(func() {
		defer leave()
		select {
		case ack := <-f.Ok():
			p.accepted.Add(1)
			if answer.Phase, answer.Stream, answer.Sequence = history.OK, ack.Stream, ack.Sequence; ack.Duplicate {
				answer.Phase, answer.Text = history.Unknown, "answered as a duplicate"
			}
		case err := <-f.Err():
			answer.Text = err.Error()
		}
		p.log.Add(answer)
	})
}

// sum returns the checksum of the body and the header that the target must receive unchanged.
func sum(body []byte, origin string) string {
	h := sha256.New()
	h.Write(body)
	h.Write([]byte("\n" + origin))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func idOf(body []byte) string {
	id, _, _ := strings.Cut(string(body), ":")
	return id
}
