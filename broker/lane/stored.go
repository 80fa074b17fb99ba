package lane

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Stored is a message as its stream holds it.
type Stored struct {
	Sequence    uint64
	At          time.Time // the leader's timestamp; not necessarily rising, since leaders and clocks change
	Subject     string
	Header      map[string][]string
	Undecodable bool // there are headers, and they do not decode
	Data        []byte
	Size        int    // bytes on the wire, headers included
	Behind      uint64 // messages in the stream behind this one when it was sent

	consumer uint64 // its number in the consumer's life
}

const ackPrefix = "$JS.ACK."

// parseStored reads a message from our inbox. It is a stored one if and only if the server says where it is stored, in
// the reply subject, and it comes under another subject than the inbox: clients can publish to an inbox, but only the
// server delivers foreign subjects there. It must come from our own consumer, whose name nobody can guess: somebody may
// have the server deliver a stream of theirs to an inbox of ours. Whatever headers it has say nothing: "Status: 409"
// may be a client's.
func parseStored(m *nats.Msg, stream, consumer string) (Stored, bool) {
	if m.Subject == m.Sub.Subject || !strings.HasPrefix(m.Reply, ackPrefix) {
		return Stored{}, false
	}
	from, s, ok := parseReply(m.Reply[len(ackPrefix):])
	if !ok || from.stream != stream || from.consumer != consumer {
		return Stored{}, false
	}
	s.Subject, s.Header, s.Data = m.Subject, m.Header, m.Data
	s.Size = m.Size() - len(m.Reply)
	// nats.go hands over a message whose headers do not decode as if it had none.
	s.Undecodable = m.Header == nil && s.Size > len(m.Subject)+len(m.Data)
	return s, true
}

// source is the consumer that delivered a message.
type source struct{ stream, consumer string }

// parseReply reads what follows "$JS.ACK.", from the front:
//
//	<stream>.<consumer>.<delivered>.<sequence>.<consumer sequence>.<nanoseconds>.<pending>
//	<domain>.<account hash>.<stream>.<consumer>.<delivered>.<…>.<pending>[.<token>…]
func parseReply(reply string) (source, Stored, bool) {
	if strings.Count(reply, ".") >= 8 {
		for range 2 { // the domain and the account
			_, reply, _ = strings.Cut(reply, ".")
		}
	}
	var from source
	from.stream, reply, _ = strings.Cut(reply, ".")
	from.consumer, reply, _ = strings.Cut(reply, ".")
	_, reply, ok := strings.Cut(reply, ".") // how often it was delivered
	if !ok {
		return source{}, Stored{}, false
	}
	var n [4]uint64
	for i := range n {
		token, rest, _ := strings.Cut(reply, ".")
		v, err := strconv.ParseUint(token, 10, 63)
		if err != nil {
			return source{}, Stored{}, false
		}
		n[i], reply = v, rest
	}
	return from, Stored{Sequence: n[0], consumer: n[1], At: time.Unix(0, int64(n[2])).UTC(), Behind: n[3]}, true
}
