package message

import (
	"slices"
	"strings"
)

// Block is a header block. Its fields divide the headers by their use.
type Block struct {
	User    Header              // the client's own headers, to be passed on; nil if there are none
	Delay   map[string][]string // the headers with known Delay-* names, in our spelling
	Unknown string              // the first, in sorted order, of the unknown Delay-* names, quoted; empty if none
	MsgID   string              // the client's Nats-Msg-Id; empty if none
}

// SplitHeader drops the reserved headers and divides the others. Reserved are Nats-*, Nmqtt-*, Status, Description and
// KV-Operation, in any case and with any padding. In our streams, these headers would change hops. In the target's
// stream, they would purge, expire, schedule or hide messages. To a consumer, a message with them would look like a
// control message. nats-server adds Nmqtt-Pub to messages that an MQTT client publishes with QoS 1 or 2. It does not
// deliver a message with Nmqtt-Pub to MQTT subscribers, because they get the message from a stream of the server.
//
// Internal is true if the message came on a subject below delaysys. If there is a problem, the block's User is still
// within the bounds for the dead letter, because nats-server stores no header block above 64 KiB.
func SplitHeader(h Header, internal bool) (Block, *Problem) {
	var s Block
	var lines, size int
	var unsafe string // the first, in sorted order, of the names that cannot be passed on, quoted
	for k, vs := range h {
		ours, name := CanonicalName(k), ""
		if ours == "" {
			name = plainName(k)
		}
		switch {
		case ours != "":
			if s.Delay == nil {
				s.Delay = make(map[string][]string)
			}
			if before := s.Delay[ours]; len(before) > 0 { // the block has the name in two spellings
				vs = slices.Concat(before, vs)
			}
			s.Delay[ours] = vs
		case strings.HasPrefix(name, "delay-"):
			s.Unknown = firstName(s.Unknown, Excerpt(k))
		case reserved(name):
			// The server reads Nats-Msg-Id only in this spelling. Below delaysys, a broker wrote the id, so it is not the
			// client's.
			if k == HeaderNatsMsgID && !internal && len(vs) > 0 {
				s.MsgID = vs[0]
				size += len(s.MsgID)
			}
		case !validKey(k):
			unsafe = firstName(unsafe, Excerpt(k))
		default:
			if s.User == nil {
				s.User = make(Header, min(len(h), 8)) // no map is smaller than one of eight entries
			}
			s.User[k] = vs
			lines += len(vs)
			for _, v := range vs {
				size += len(k) + len(v) + 4
			}
		}
	}
	switch {
	case lines > maxHeaderLines || size > maxHeaderBytes:
		s.User = nil
		return s, Problemf(BadHeaders,
			"%d headers of %d bytes: at most %d headers of %d bytes are passed on, put the rest into the body",
			lines, size, maxHeaderLines, maxHeaderBytes)
	case unsafe != "":
		return s, Problemf(BadHeaders, "the header name %s cannot be passed on: letters, digits and - are safe", unsafe)
	}
	return s, nil
}

// Single returns the value of a Delay-* header, or "" if the header is missing. A duplicate header is a problem, since
// one of the two may be forged.
func (s Block) Single(header string) (string, *Problem) {
	vs := s.Delay[header]
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
func (s Block) CheckSpelling() *Problem {
	if s.Unknown == "" {
		return nil
	}
	return Problemf(BadOption, "there is no header %s: leave it out, or write a header of PROTOCOL.md, such as "+
		"Delay-Until, Delay-Expires, Delay-Deliver, Delay-TTL or Delay-Max-Attempts", s.Unknown)
}

// First returns the first of the given headers that the block has, or "". The names are in our spelling.
func (s Block) First(names ...string) string {
	for _, name := range names {
		if s.Delay[name] != nil {
			return name
		}
	}
	return ""
}
