package harness

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Load publishes requests at a constant rate until it is stopped, and records the accepted ones.
type Load struct {
	t        testing.TB
	js       jetstream.JetStream
	subjects []string
	stop     chan struct{}
	done     chan struct{}

	mu        sync.Mutex
	accepted  map[string]bool // bodies of acknowledged messages
	published map[string]bool // bodies of all messages, also of refused ones
}

// StartLoad publishes rate messages a second, to the subjects in turn. The rate is a multiple of 100.
func StartLoad(t testing.TB, nc *nats.Conn, rate int, subjects ...string) *Load {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	l := &Load{t: t, js: js, subjects: subjects, stop: make(chan struct{}), done: make(chan struct{}),
		accepted: make(map[string]bool), published: make(map[string]bool)}
	go l.run(rate)
	return l
}

func (l *Load) run(rate int) {
	defer close(l.done)
	const pace = 10 * time.Millisecond
	tick := time.NewTicker(pace)
	defer tick.Stop()
	var answers sync.WaitGroup
	defer answers.Wait()
	for n := 0; ; {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		for range rate * int(pace) / int(time.Second) {
			body := fmt.Sprint(n)
			subject := l.subjects[n%len(l.subjects)]
			n++
			l.mu.Lock()
			l.published[body] = true
			l.mu.Unlock()
			f, err := l.js.PublishAsync(subject, []byte(body), jetstream.WithRetryAttempts(0))
			if err != nil {
				continue // not accepted
			}
			answers.Go(func() {
				select {
				case <-f.Ok():
					l.mu.Lock()
					l.accepted[body] = true
					l.mu.Unlock()
				case <-f.Err(): // unknown: the stream may have stored the message
				}
			})
		}
	}
}

// End stops the load and returns the number of accepted messages. It fails the test if this is less than minAccepted.
func (l *Load) End(minAccepted int) (accepted int) {
	l.t.Helper()
	close(l.stop)
	<-l.done
	if accepted = len(l.accepted); accepted < minAccepted {
		l.t.Errorf("the streams accepted only %d messages, want at least %d: fewer prove little", accepted, minAccepted)
	}
	return accepted
}

// AwaitCount waits until a stream holds at least want messages, for at most the timeout. It returns the number that it
// saw last.
func (c *Client) AwaitCount(stream string, want int, timeout time.Duration) int {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	got := 0
	for ctx.Err() == nil && got < want {
		if s, err := c.JS.Stream(ctx, stream); err == nil {
			got = int(s.CachedInfo().State.Msgs)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return got
}

// CheckHistory compares the delivered messages with the accepted messages. It fails the test for a lost, early or
// unknown message, and for a duplicate.
func (l *Load) CheckHistory(got []Arrival) {
	l.t.Helper()
	count := make(map[string]int)
	for _, a := range got {
		count[a.Body]++
		if a.At.Before(a.Due) {
			l.t.Errorf("%s arrived %s early", a.Body, a.Due.Sub(a.At))
		}
		if !l.published[a.Body] {
			l.t.Errorf("%q arrived, and the load did not publish it", a.Body)
		}
	}
	lost, twice := 0, 0
	for body := range l.accepted {
		if count[body] == 0 {
			lost++
		}
	}
	for _, n := range count {
		if n > 1 {
			twice++
		}
	}
	if lost > 0 || twice > 0 {
		l.t.Errorf("of %d accepted, %d were lost; of %d that arrived, %d arrived more than once", len(l.accepted), lost,
			len(count), twice)
	}
	l.t.Logf("%d accepted, %d arrived, %d lost, %d twice", len(l.accepted), len(count), lost, twice)
}

// MixedDelays are delays that together use the intake, levels, hops and the wheel.
var MixedDelays = []string{"delayin.50ms.orders.a", "delay.1s.orders.b", "delayin.1500ms.orders.c", "delay.3s.orders.d",
	"delayin.4s.orders.e", "delayin.700ms.orders.f"}

// LoadRate is the rate of a Load, in messages a second. At this rate, hundreds of messages wait at each kill.
const LoadRate = 500
