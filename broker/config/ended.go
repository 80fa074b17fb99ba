package config

import (
	"time"

	"delaybroker/broker/message"
)

// Ended describes a message that was delivered or became a dead letter. Other instances may have moved the message
// before, so all data comes from the message's headers and its last stream.
type Ended struct {
	message.Ending
	Accepted     time.Time      // time at which the first stream stored the message
	Header       message.Header // the client's own headers; the callee must not change them
	Size         int            // bytes of the body
	Hops         int            // number of publishes by brokers into lanes, including retry lanes
	Lane         string         // the last stream
	Stored       time.Time      // time at which the last stream stored the message
	FirstRefusal time.Time      // time of the first refusal; zero for none
	LastRefusal  time.Time      // time of the last refusal; zero for none
}
