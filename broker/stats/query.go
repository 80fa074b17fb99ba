package stats

import (
	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
)

// HeaderExcept is a header of a query for the state of each instance: the instance that sends the query for its page,
// and does not answer it. Other senders have no such header.
const HeaderExcept = "Delay-Except"

// QueryHeader returns the headers of a query.
func QueryHeader(except string) nats.Header {
	h := nats.Header{}
	message.Put(h, HeaderExcept, except)
	return h
}
