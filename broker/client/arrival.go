package client

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// An Arrival is the delay metadata in the headers of a delivered message. Compare IDs to detect duplicates, which can
// occur, for example, after a crash. The headers are not authenticated: anyone who may publish to the target can forge
// them.
type Arrival struct {
	message.Arrival
	// At is the time at which the target's stream stored the message. For a core subscriber, At is the time of the call of
	// ParseArrival.
	At time.Time
}

// ParseArrival returns the Arrival of a message that a core subscriber received. Ok is false if the message does not
// have the headers of a broker.
func ParseArrival(m *nats.Msg) (a Arrival, ok bool) {
	parsed, ok := message.ParseArrival(message.Header(m.Header))
	return Arrival{parsed, time.Now()}, ok
}

// ParseJetStreamArrival returns the Arrival of a message that a JetStream consumer received. Ok is false if the message
// does not have the headers of a broker.
func ParseJetStreamArrival(m jetstream.Msg) (a Arrival, ok bool) {
	parsed, ok := message.ParseArrival(message.Header(m.Headers()))
	a = Arrival{parsed, time.Now()}
	if stored, err := m.Metadata(); err == nil {
		a.At = stored.Timestamp
	}
	return a, ok
}

// Lateness returns the time from Due to At. For a core subscriber, it includes the difference between the clocks of
// this host and the server.
func (a Arrival) Lateness() time.Duration { return a.At.Sub(a.Due) }
