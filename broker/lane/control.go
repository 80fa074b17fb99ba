package lane

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// control is a status message that the server itself publishes to a reader's inbox. A client that may publish to the
// inbox can forge a control message. So a control message may end a consumer or a request, but never makes the reader
// skip a message.
type control struct {
	kind            controlKind
	limit           int    // batchTooLarge: the largest allowed batch
	bytesLeft       int    // requestFull: unused bytes of the request; zero if unknown
	lastConsumerSeq uint64 // heartbeat: the consumer sequence of the last message that the consumer sent
	seqValid        bool   // heartbeat: lastConsumerSeq is valid
	position        uint64 // heartbeat: the sequence up to which the consumer has read the stream; zero if unknown
	status          string // the status and its description, for an error
}

type controlKind int

const (
	noControl     controlKind = iota // there is no status
	heartbeat                        // the consumer is alive
	requestEnded                     // a request ended; its consumer still exists
	requestFull                      // a request ended because its remaining bytes have no room for the next message
	batchTooLarge                    // the request asks for more messages than the server allows
	consumerEnded                    // the consumer ended, or the status is unknown
)

// parseControl parses the headers of a control message.
func parseControl(h nats.Header) control {
	status, description := h.Get("Status"), h.Get("Description")
	c := control{status: strings.TrimSpace(status + " " + description)}
	limit, limited := batchLimit(description)
	switch {
	case status == "":
		return c
	case status == "100":
		c.kind = heartbeat
		seq, err := strconv.ParseUint(h.Get("Nats-Last-Consumer"), 10, 64)
		c.lastConsumerSeq, c.seqValid = seq, err == nil
		c.position, _ = strconv.ParseUint(h.Get("Nats-Last-Stream"), 10, 64)
		return c
	case status == "409" && strings.HasPrefix(description, "Message Size Exceeds MaxBytes"):
		c.kind = requestFull
	case status == "409" && limited:
		c.kind, c.limit = batchTooLarge, limit
	case status == "408", status == "404" && description == "No Messages",
		status == "409" && strings.HasPrefix(description, "Batch Completed"):
		c.kind = requestEnded
	default:
		c.kind = consumerEnded
	}
	if n, err := strconv.ParseUint(h.Get("Nats-Pending-Bytes"), 10, 31); err == nil && c.kind == requestFull {
		c.bytesLeft = int(n)
	}
	return c
}
