package store

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// newTimers creates the timers' stream on a server, and returns its timers and a client for tests to publish with.
func newTimers(t *testing.T, s *natstest.Server) (*Timers, jetstream.JetStream) {
	t.Helper()
	names, err := message.NewNames(message.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	nc := s.Connect()
	js := s.JetStream(nc)
	cfg := jetstream.StreamConfig{Name: names.TimersStream(), Subjects: []string{names.TimerFilter()}}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	timers := &Timers{Policy: message.Policy{Names: names}, API: jsapi.Client{Conn: nc, API: "$JS.API"}}
	timers.Scan.JetStream = js
	return timers, js
}
