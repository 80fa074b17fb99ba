package lane

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
)

const (
	ackPrefix  = "$JS.ACK."
	sizeHeader = "Nats-Msg-Size"
)

// Message is a message of a stream.
type Message struct {
	Sequence    uint64    // in the stream
	At          time.Time // when the leader stored it, by its clock; may be earlier than the previous message's At
	Subject     string
	Header      map[string][]string
	Undecodable bool // the message has headers that cannot be decoded
	Data        []byte
	Size        int    // bytes on the wire: subject, headers and body
	Pending     uint64 // number of messages of the lane that followed this message when the server sent it

	consumerSeq uint64 // consumer sequence: see "The reader skips no message" in the package documentation
}

// Incoming returns the message in the form that package message parses. If the message was read without its body, the
// caller must set HeadersOnly in the result.
func (m Message) Incoming(stream string) message.Incoming {
	return message.Incoming{
		Stream: stream, Sequence: m.Sequence, At: m.At, Subject: m.Subject, Header: m.Header,
		Undecodable: m.Undecodable, Data: m.Data,
	}
}

// BodySize returns the size of the body, in bytes, of a message that was read without its body. The server appends a
// header with the size to the headers of the message. A client may have set the same header, so the last value counts.
func (m Message) BodySize() int {
	sizes := m.Header[sizeHeader]
	if len(sizes) == 0 {
		return 0
	}
	n, err := strconv.ParseUint(sizes[len(sizes)-1], 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// parseStored parses a message from the reader's inbox. It returns false if the message is not a stored message that
// the consumer delivered. A stored message meets two conditions:
//
//   - Its subject is not below the inbox. Clients can publish to an inbox, but only the server delivers messages with
//     another subject to the inbox.
//   - Its reply subject names the reader's consumer, whose name is random. Without this condition, a client could make
//     the server deliver the messages of another stream to the inbox.
//
// The headers prove nothing, because a client may have written "Status: 409".
func parseStored(m *nats.Msg, inbox, stream, consumer string) (Message, bool) {
	if strings.HasPrefix(m.Subject, inbox) || !strings.HasPrefix(m.Reply, ackPrefix) {
		return Message{}, false
	}
	from, s, ok := parseReply(m.Reply[len(ackPrefix):])
	if !ok || from.stream != stream || from.consumer != consumer {
		return Message{}, false
	}
	s.Subject, s.Header, s.Data = m.Subject, m.Header, m.Data
	s.Size = m.Size() - len(m.Reply)
	// If the headers do not decode, nats.go delivers the message as if it had no headers.
	s.Undecodable = m.Header == nil && s.Size > len(m.Subject)+len(m.Data)
	return s, true
}

// source identifies the consumer that has delivered a message.
type source struct{ stream, consumer string }

// parseReply parses a reply subject without its prefix "$JS.ACK.". It has one of two forms:
//
//	<stream>.<consumer>.<delivered>.<stream sequence>.<consumer sequence>.<timestamp in ns>.<pending>
//	<domain>.<account hash>.<stream>.<consumer>.<delivered>.<…>.<pending>[.<token>…]
func parseReply(reply string) (source, Message, bool) {
	if strings.Count(reply, ".") >= 8 {
		for range 2 { // the domain and the account
			_, reply, _ = strings.Cut(reply, ".")
		}
	}
	var from source
	from.stream, reply, _ = strings.Cut(reply, ".")
	from.consumer, reply, _ = strings.Cut(reply, ".")
	_, reply, ok := strings.Cut(reply, ".") // the number of deliveries
	if !ok {
		return source{}, Message{}, false
	}
	var n [4]uint64
	for i := range n {
		token, rest, _ := strings.Cut(reply, ".")
		v, err := strconv.ParseUint(token, 10, 63)
		if err != nil {
			return source{}, Message{}, false
		}
		n[i], reply = v, rest
	}
	return from, Message{Sequence: n[0], consumerSeq: n[1], At: time.Unix(0, int64(n[2])).UTC(), Pending: n[3]}, true
}
