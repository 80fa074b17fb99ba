package conf

import (
	"time"

	"delaybroker/broker/message"
)

// Ended is how a message ended: its ending, and what is known of its way. The message may have come here from another
// instance, so it is only what travelled with the message.
type Ended struct {
	message.Ending
	Accepted time.Time      // when the first stream stored it
	Header   message.Header // the client's own headers; nobody may change them
	Size     int            // bytes of the body
	Hops     int            // publishes into lanes so far, retries included
	Lane     string         // the stream that it ended in
	Stored   time.Time      // when that stream stored it
	First    time.Time      // the first refusal; zero for none
	Last     time.Time      // and the last
}
