package message

import (
	"slices"
	"strings"
)

// Block is a header block, sorted by the trust in its headers.
type Block struct {
	User    Header              // the client's own headers, to be passed on; nil if there are none
	Delay   map[string][]string // the known Delay-* names, in our spelling
	Unknown string              // the first of the other Delay-* names in sorted order, quoted
	MsgID   string              // the client's Nats-Msg-Id
}

// SplitHeader drops the reserved headers and sorts the rest. Reserved are Nats-*, Nmqtt-*, Status, Description and
// KV-Operation, in any case and with any padding: they would change hops in our streams, would purge, expire, schedule
// or hide messages in the target's stream, and look like control messages to a consumer. nats-server puts Nmqtt-Pub on
// messages that an MQTT client publishes with QoS 1 or 2. With it, nats-server withholds a copy from MQTT subscribers,
// which get the message from another stream. Internal means that the message came on a subject below delaysys.
//
// If there is a problem, the user's headers are still within the bounds: the dead letter has them, and nats-server
// stores no header block above 64 KiB.
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
			if before := s.Delay[ours]; len(before) > 0 { // in another spelling
				vs = slices.Concat(before, vs)
			}
			s.Delay[ours] = vs
		case strings.HasPrefix(name, "delay-"):
			s.Unknown = least(s.Unknown, Excerpt(k))
		case reserved(name):
			// The server does not take another spelling for an id. Below delaysys the id is our own, and is not passed on.
			if k == HeaderNatsMsgID && !internal && len(vs) > 0 {
				s.MsgID = vs[0]
				size += len(s.MsgID)
			}
		case !validKey(k):
			unsafe = least(unsafe, Excerpt(k))
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

// One returns the single value of a Delay-* header. A duplicate header is a problem, since one of the two may be
// forged.
func (s Block) One(header string) (string, *Problem) {
	vs := s.Delay[header]
	switch len(vs) {
	case 0:
		return "", nil
	case 1:
		return strings.TrimSpace(vs[0]), nil
	}
	return "", Problemf(TimeTwice, "the header %s is given %d times: once", header, len(vs))
}

// Misspelt returns the problem of an unknown Delay-* name, or nil. If a misspelt Delay-Until were ignored, the message
// would be early. The sentence lists the most used headers.
func (s Block) Misspelt() *Problem {
	if s.Unknown == "" {
		return nil
	}
	return Problemf(BadOption, "there is no header %s: leave it out, or write one of those in PROTOCOL.md, such as "+
		"Delay-Until, Delay-Expires, Delay-Deliver, Delay-TTL or Delay-Max-Attempts", s.Unknown)
}

// First returns the first of these headers, in our spelling, that the block has, or "" if it has none of them.
func (s Block) First(names ...string) string {
	for _, name := range names {
		if s.Delay[name] != nil {
			return name
		}
	}
	return ""
}
