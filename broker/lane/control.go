package lane

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// control is what the server itself says in a consumer's inbox. It may be forged by whoever may publish there, so it
// can cost a consumer or a request, and no message.
type control struct {
	kind    controlKind
	left    int    // messages that an ended request asked for and did not get
	room    int    // bytes that a request which ended for want of room had left; zero is not known
	last    uint64 // heartbeat: the number of the consumer's last message, if counted
	counted bool   // heartbeat: last is said
	passed  uint64 // heartbeat: the sequence of the last message that the consumer is past; zero is not said
	words   string // status and description
}

type controlKind int

const (
	nothing       controlKind = iota // no server writes that
	heartbeat                        // the consumer is alive
	requestEnded                     // and its consumer goes on
	noRoom                           // the same, because the next message is larger than it allowed
	consumerEnded                    // or whatever else is not known to be harmless
)

// parseControl reads the headers of a message without a place in a stream.
func parseControl(h nats.Header) control {
	status, description := h.Get("Status"), h.Get("Description")
	c := control{words: strings.TrimSpace(status + " " + description)}
	switch {
	case status == "":
		return c
	case status == "100":
		c.kind = heartbeat
		last, err := strconv.ParseUint(h.Get("Nats-Last-Consumer"), 10, 64)
		c.last, c.counted = last, err == nil
		c.passed, _ = strconv.ParseUint(h.Get("Nats-Last-Stream"), 10, 64)
		return c
	case status == "409" && strings.HasPrefix(description, "Message Size Exceeds MaxBytes"):
		c.kind = noRoom
	case status == "408", status == "409" && strings.HasPrefix(description, "Batch Completed"):
		c.kind = requestEnded
	default:
		c.kind = consumerEnded
	}
	if left, err := strconv.ParseUint(h.Get("Nats-Pending-Messages"), 10, 31); err == nil {
		c.left = int(left)
	}
	if room, err := strconv.ParseUint(h.Get("Nats-Pending-Bytes"), 10, 31); err == nil && c.kind == noRoom {
		c.room = int(room)
	}
	return c
}
