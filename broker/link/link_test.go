package link_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/link"
	"delaybroker/test/natstest"
)

// TestStatesFollowTheConnections: the state of a connection is known without a request. The function of a watcher is
// called when the connection is back.
func TestStatesFollowTheConnections(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		states := link.NewStates(link.Links{Read: nc, Write: nc, Deliver: nc, Control: nc})
		if states.Online() || states.ControlUp() {
			t.Error("they are up before anybody has looked")
		}
		if states.Look(); !states.Online() || !states.ControlUp() {
			t.Error("after a look they are not up")
		}
		ctx, stop := context.WithCancel(t.Context())
		back, ended := make(chan struct{}, 100), make(chan struct{})
		go func() {
			defer close(ended)
			states.Watch(ctx, func() { back <- struct{}{} })
		}()
		synctest.Wait()
		s.Stop()
		time.Sleep(time.Second)
		if states.Online() || states.ControlUp() {
			t.Error("without a server they are up")
		}
		s.Start()
		<-back
		time.Sleep(time.Second)
		if !states.Online() || !states.ControlUp() {
			t.Error("they are not up again")
		}
		stop()
		<-ended
	})
}

// TestJetStreamIsBack: after a request without an answer, the next answer is reported once.
func TestJetStreamIsBack(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		js := link.NewJetStream(s.JetStream(nc), jsapi.Client{Conn: nc, API: "$JS.API"})
		told := func() bool {
			select {
			case <-js.Back():
				return true
			default:
				return false
			}
		}
		ask := func(ctx context.Context) { _, _ = js.Sample(ctx, "NONE") }
		ask(t.Context())
		if told() {
			t.Error("it is back, and was never away")
		}
		late, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		ask(late)
		stream(t, s, nc)
		if _, err := js.Sample(t.Context(), "ORDERS"); err != nil {
			t.Fatal(err)
		}
		if !told() || told() {
			t.Error("that it answers again is not told, or twice")
		}
	})
}

func stream(t *testing.T, s *natstest.Server, nc *nats.Conn) {
	t.Helper()
	cfg := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}
	if _, err := s.JetStream(nc).CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}
