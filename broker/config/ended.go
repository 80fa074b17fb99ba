package config

import (
	"time"

	"delaybroker/broker/message"
)

// Ended describes a message that was delivered or became a dead letter. Another instance may have handled the message
// before, so Ended holds only what the message's headers and its last stream contain.
type Ended struct {
	message.Ending
	Accepted time.Time      // when the first stream stored it
	Header   message.Header // the client's own headers; the callee must not change them
	Size     int            // bytes of the body
	Hops     int            // publishes into lanes so far, retries included
	Lane     string         // the last stream that held it
	Stored   time.Time      // when that stream stored it
	First    time.Time      // the first refusal; zero for none
	Last     time.Time      // the last refusal; zero for none
}
