package client

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// An Arrival is what a message that a broker delivered says about its delay. Compare ID to know copies, which come
// after a crash. A publisher that may publish to the target itself can write the same headers.
type Arrival struct {
	message.Arrival
	// At is when it came: when the target's stream stored it or, for a subscriber, when Of was called.
	At time.Time
}

// Of reads a message of a subscriber. It is false for one that no broker delivered.
func Of(m *nats.Msg) (Arrival, bool) {
	told, ok := message.ParseArrival(message.Header(m.Header))
	return Arrival{told, time.Now()}, ok
}

// OfMsg is Of for a message of a JetStream consumer.
func OfMsg(m jetstream.Msg) (Arrival, bool) {
	told, ok := message.ParseArrival(message.Header(m.Headers()))
	a := Arrival{told, time.Now()}
	if stored, err := m.Metadata(); err == nil {
		a.At = stored.Timestamp
	}
	return a, ok
}

// Late is by how much it came after it was due. To a subscriber it includes the difference between the clocks of this
// host and the server.
func (a Arrival) Late() time.Duration { return a.At.Sub(a.Due) }
