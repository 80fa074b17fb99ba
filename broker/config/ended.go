package config

import (
	"time"

	"delaybroker/broker/message"
)

// Ended describes a message that was delivered or became a dead letter. Another instance may have moved the message
// before. So Ended has only the data in the message's headers and its last stream.
type Ended struct {
	message.Ending
	Accepted time.Time      // when the first stream stored it
	Header   message.Header // the client's own headers; the callee must not change them
	Size     int            // bytes of the body
	Hops     int            // publishes into lanes so far, retries included
	Lane     string         // the last stream
	Stored   time.Time      // when that stream stored it
	First    time.Time      // the first refusal; zero for none
	Last     time.Time      // the last refusal; zero for none
}
