package harness

import (
	"bytes"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// A Listener calls a function for each log line with a phrase.
type Listener struct {
	Phrase string
	Heard  func()
}

func (l Listener) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(l.Phrase)) {
		l.Heard()
	}
	return len(line), nil
}

// SlowService answers a number of requests a second, in order, however many wait.
func (c *Client) SlowService(subject string, perSecond int) {
	c.T.Helper()
	const turn = 10 * time.Millisecond
	var mu sync.Mutex
	var queue []*nats.Msg
	natstest.Handle(c.T, c.NC, subject, func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		queue = append(queue, m)
	})
	done := make(chan struct{})
	c.T.Cleanup(func() { close(done) })
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(turn):
			}
			mu.Lock()
			n := min(perSecond/int(time.Second/turn), len(queue))
			now := queue[:n]
			queue = queue[n:]
			mu.Unlock()
			for _, m := range now {
				_ = m.Respond([]byte("ok"))
			}
		}
	}()
}

// Silent subscribes to a subject, and never acknowledges.
func (c *Client) Silent(subject string) {
	c.T.Helper()
	natstest.Handle(c.T, c.NC, subject, func(*nats.Msg) {})
}
