package stats

import (
	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
)

// headerExcept is a header of a query.
const headerExcept = "Delay-Except"

// QueryOptions are the options of a query for the state of each instance.
type QueryOptions struct {
	Except string // the instance that sends the query for its page, and does not answer it; empty for other senders
}

// Header returns the headers of a query.
func (o QueryOptions) Header() nats.Header {
	h := nats.Header{}
	message.Put(h, headerExcept, o.Except)
	return h
}

// ParseQuery returns the options in the headers of a query.
func ParseQuery(h nats.Header) QueryOptions { return QueryOptions{Except: h.Get(headerExcept)} }
