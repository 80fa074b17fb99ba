package link_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/link"
	"delaybroker/test/natstest"
)

// TestStatesFollowTheConnections: after Refresh and during Watch, the states are the states of the connections. Watch
// calls onUp when a connection is up again.
func TestStatesFollowTheConnections(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		states := link.NewStates(link.Links{Read: nc, Write: nc, Deliver: nc, Control: nc})
		if states.Online() {
			t.Error("before Refresh, the connections count as up")
		}
		if states.Refresh(); !states.Online() {
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
		if states.Online() {
			t.Error("without a server, the connections count as up")
		}
		s.Start()
		<-up
		time.Sleep(time.Second)
		if !states.Online() {
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

// TestUselessConnection: JetStream does not answer on a connection on which the server answers pings. A stand-by counts
// the connection as useless after 1.5 s, and the active instance after 3 s. The connection is opened again after 10 s,
// and then every 30 s.
func TestUselessConnection(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		service, nc := s.Connect(), s.Connect()
		var silent atomic.Bool
		_, err := service.Subscribe("api.info", func(m *nats.Msg) {
			if !silent.Load() {
				_ = m.Respond(nil) // the test fails if no answer arrives
			}
		})
		natstest.NoError(t, err)
		natstest.Flush(t, service)
		links := link.Links{Read: nc, Write: nc, Deliver: nc, Control: nc}
		answers := link.NewAnswers(links, "api.info", slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			answers.Run(ctx)
		}()
		check := func(standby, active bool, reopened uint64) {
			t.Helper()
			synctest.Wait()
			now := time.Now()
			gotStandby, gotActive := answers.Problem(now, true) != nil, answers.Problem(now, false) != nil
			if n := nc.Stats().Reconnects; gotStandby != standby || gotActive != active || n != reopened {
				t.Errorf("useless for a stand-by: %t, for the active instance: %t, opened again %d times; want %t, %t, %d",
					gotStandby, gotActive, n, standby, active, reopened)
			}
		}
		time.Sleep(time.Minute + time.Second/2)
		check(false, false, 0)
		silent.Store(true)
		time.Sleep(2*time.Second - 1) // the next request is sent after half a second
		check(false, false, 0)
		time.Sleep(time.Nanosecond)
		check(true, false, 0)
		time.Sleep(1500*time.Millisecond - 1)
		check(true, false, 0)
		time.Sleep(time.Nanosecond)
		check(true, true, 0)
		time.Sleep(9 * time.Second)
		check(true, true, 0)
		time.Sleep(5 * time.Second)
		check(true, true, 1)
		time.Sleep(time.Minute)
		check(true, true, 3)
		silent.Store(false)
		time.Sleep(4 * time.Second)
		check(false, false, 3)
		stop()
		<-ended
	})
}
