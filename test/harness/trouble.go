package harness

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/natstest"
)

// A Listener calls a function for each log line with a phrase.
type Listener struct {
	Phrase string
	Notify func()
}

func (l Listener) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(l.Phrase)) {
		l.Notify()
	}
	return len(line), nil
}

// Service answers requests on a subject and records them. If answer returns nil for the n-th request, that request gets
// no reply.
func (c *Client) Service(subject string, answer func(n int) *nats.Msg) *Inbox {
	c.T.Helper()
	in := c.Subscribe(subject)
	n := 0
	natstest.Handle(c.T, c.NC, subject, func(m *nats.Msg) {
		n++
		if a := answer(n); a != nil {
			_ = m.RespondMsg(a)
		}
	})
	return in
}

// FailureReply returns the reply of a service to a failed request.
func FailureReply(text string) *nats.Msg {
	return &nats.Msg{Header: nats.Header{"Nats-Service-Error": {text}, "Nats-Service-Error-Code": {"500"}}}
}

// SlowService answers perSecond requests a second, in order. Its queue has no bound.
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

// SilentTarget subscribes to a subject, and never acknowledges.
func (c *Client) SilentTarget(subject string) {
	c.T.Helper()
	natstest.Handle(c.T, c.NC, subject, func(*nats.Msg) {})
}

// Mute changes a configuration so that a test can leave requests of the broker to the JetStream API unanswered. While
// the returned value is true, the requests whose API subject begins with a text get no answer. Mute fails the test if
// there was no such request.
func Mute(t *testing.T, s *natstest.Server, cfg *broker.Config, begins string) *atomic.Bool {
	t.Helper()
	return Intercept(t, s, cfg, begins, func(*nats.Msg) {})
}

// Intercept is like Mute, but calls a function for each of these requests.
func Intercept(
	t *testing.T, s *natstest.Server, cfg *broker.Config, begins string, answer func(m *nats.Msg),
) *atomic.Bool {
	t.Helper()
	on, met := new(atomic.Bool), new(atomic.Int64)
	natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
		if !on.Load() || !strings.HasPrefix(question, begins) {
			return false
		}
		met.Add(1)
		answer(m)
		return true
	})
	t.Cleanup(func() {
		if met.Load() == 0 {
			t.Errorf("there was no request whose API subject begins with %s", begins)
		}
	})
	cfg.APIPrefix = natstest.ProxyAPI
	return on
}

// LeaderlessList returns the server's answer to a request for a list of streams, changed as if one stream had no
// leader: the list has only the name of this stream.
func LeaderlessList(t *testing.T, nc *nats.Conn, request []byte, stream string) []byte {
	answer, err := natstest.Request(nc, &nats.Msg{Subject: "$JS.API.STREAM.LIST", Data: request}, time.Second)
	if err != nil {
		t.Errorf("list the streams: %v", err)
		return nil
	}
	var list map[string]any
	if err := json.Unmarshal(answer.Data, &list); err != nil {
		t.Errorf("decode the list: %v", err)
	}
	var described []any
	for _, info := range list["streams"].([]any) {
		if info.(map[string]any)["config"].(map[string]any)["name"] != stream {
			described = append(described, info)
		}
	}
	list["streams"], list["missing"] = described, []string{stream}
	body, err := json.Marshal(list)
	if err != nil {
		t.Errorf("encode the list: %v", err)
	}
	return body
}
