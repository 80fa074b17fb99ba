package link_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/link"
	"delaybroker/test/natstest"
)

// TestStatesFollowTheConnections: after Refresh and during Watch, the states are the states of the connections. Watch
// calls onUp when a connection is up again.
func TestStatesFollowTheConnections(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		states := link.NewStates(link.Links{Read: nc, Write: nc, Deliver: nc, Control: nc})
		if states.Online() || states.ControlUp() {
			t.Error("before Refresh, the connections count as up")
		}
		if states.Refresh(); !states.Online() || !states.ControlUp() {
			t.Error("after Refresh, the connections do not count as up")
		}
		ctx, stop := context.WithCancel(t.Context())
		up, ended := make(chan struct{}, 100), make(chan struct{})
		go func() {
			defer close(ended)
			states.Watch(ctx, func() { up <- struct{}{} })
		}()
		synctest.Wait()
		s.Stop()
		time.Sleep(time.Second)
		if states.Online() || states.ControlUp() {
			t.Error("without a server, the connections count as up")
		}
		s.Start()
		<-up
		time.Sleep(time.Second)
		if !states.Online() || !states.ControlUp() {
			t.Error("with the server, the connections do not count as up")
		}
		stop()
		<-ended
	})
}

// TestJetStreamRecovers: after a request without an answer, JetStream reports the next answer once.
func TestJetStreamRecovers(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		js := link.NewJetStream(s.JetStream(nc), jsapi.Client{Conn: nc, API: "$JS.API"})
		recovered := func() bool {
			select {
			case <-js.Recovered():
				return true
			default:
				return false
			}
		}
		_, _ = js.Sample(t.Context(), "NONE") // the answer is that there is no such stream
		if recovered() {
			t.Error("a recovery is reported, but no request has failed")
		}
		expired, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		_, _ = js.Sample(expired, "NONE")
		cfg := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}
		if _, err := s.JetStream(nc).CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := js.Sample(t.Context(), "ORDERS"); err != nil {
			t.Fatal(err)
		}
		if !recovered() || recovered() {
			t.Error("the recovery is not reported, or is reported twice")
		}
	})
}
