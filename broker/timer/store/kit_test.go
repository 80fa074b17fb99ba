package store

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
	"delaybroker/test/natstest"
)

// newTimers returns the timers of a new stream on a server, and a client for tests to publish with.
func newTimers(t *testing.T, s *natstest.Server) (*Timers, jetstream.JetStream) {
	t.Helper()
	names, err := message.NewNames(message.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	nc, js := s.TimersStream()
	api := jsapi.Client{Conn: nc, API: "$JS.API"}
	return &Timers{
		Timers: change.Timers{Policy: message.Policy{Names: names}, API: api},
		Scan:   lane.Scan{Conn: nc, JetStream: js, APIPrefix: api.API},
	}, js
}
