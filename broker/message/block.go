package message

import (
	"slices"
	"strings"
)

// Block is the header block of a message, as SplitHeader divides it.
type Block struct {
	User        Header              // the client's own headers, to be passed on; may be nil
	Delay       map[string][]string // the headers with known Delay-* names, in canonical spelling
	UnknownName string              // the first unknown Delay-* name in byte order, quoted; empty if none
	MsgID       string              // the client's Nats-Msg-Id; empty if none
}

// SplitHeader drops the reserved headers except a client's Nats-Msg-Id, and divides the other headers. Reserved are
// Nats-*, Nmqtt-*, Status, Description and KV-Operation, in any case and with any padding. In a stream, these headers
// would purge, expire, schedule or hide messages. To a consumer, a message with them would look like a control message.
// nats-server adds Nmqtt-Pub to the messages of MQTT clients, and does not deliver every message with this header to
// MQTT subscribers.
//
// ByBroker means that a broker published the message. If the headers are too many or too large, SplitHeader returns a
// problem and a nil User: the request becomes a dead letter, whose headers must fit into max_payload.
func SplitHeader(h Header, byBroker bool) (Block, *Problem) {
	var b Block
	var lines, size int
	var unsafeName string // the first name in byte order that cannot be passed on, quoted
	for k, vs := range h {
		canonical, lowerName := CanonicalName(k), ""
		if canonical == "" {
			lowerName = plainName(k)
		}
		switch {
		case canonical != "":
			if b.Delay == nil {
				b.Delay = make(map[string][]string)
			}
			if earlier := b.Delay[canonical]; len(earlier) > 0 { // the message has the header in two spellings
				vs = slices.Concat(earlier, vs)
			}
			b.Delay[canonical] = vs
		case strings.HasPrefix(lowerName, "delay-"):
			b.UnknownName = leastName(b.UnknownName, Excerpt(k))
		case isReserved(lowerName):
			// The server reads Nats-Msg-Id only in this spelling. In a broker's publish, the id is the broker's own.
			if k == HeaderNatsMsgID && !byBroker && len(vs) > 0 {
				b.MsgID = vs[0]
				size += len(b.MsgID)
			}
		case !validKey(k):
			unsafeName = leastName(unsafeName, Excerpt(k))
		default:
			if b.User == nil {
				b.User = make(Header)
			}
			b.User[k] = vs
			lines += len(vs)
			for _, v := range vs {
				size += len(k) + len(v) + 4
			}
		}
	}
	switch {
	case lines > maxHeaderLines || size > maxHeaderBytes:
		b.User = nil
		return b, Problemf(BadHeaders,
			"%d headers with %d bytes in total: at most %d headers with %d bytes in total are passed on; "+
				"put the rest into the body",
			lines, size, maxHeaderLines, maxHeaderBytes)
	case unsafeName != "":
		return b, Problemf(BadHeaders, "the header name %s cannot be passed on: letters, digits and - are safe", unsafeName)
	}
	return b, nil
}

// Value returns the value of a Delay-* header, or "" if the header is missing. A duplicate header is a problem, because
// it is unclear which value counts.
func (b Block) Value(header string) (string, *Problem) {
	vs := b.Delay[header]
	switch len(vs) {
	case 0:
		return "", nil
	case 1:
		return strings.TrimSpace(vs[0]), nil
	}
	return "", Problemf(TimeTwice, "the header %s is given %d times: write it once", header, len(vs))
}

// CheckSpelling returns a problem if the block has an unknown Delay-* name. If the broker ignored a misspelt
// Delay-Until, it would deliver the message early.
func (b Block) CheckSpelling() *Problem {
	if b.UnknownName == "" {
		return nil
	}
	return Problemf(BadOption, "%s is not a header of this protocol: leave it out, or write a header of PROTOCOL.md, "+
		"such as Delay-Until, Delay-Expires, Delay-Deliver, Delay-TTL or Delay-Max-Attempts", b.UnknownName)
}

// FirstHeader returns the first of the given headers that the block has, or "". The names are in canonical spelling.
func (b Block) FirstHeader(names ...string) string {
	for _, name := range names {
		if b.Delay[name] != nil {
			return name
		}
	}
	return ""
}
