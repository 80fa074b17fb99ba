package entry

import (
	"strconv"
	"strings"

	"delaybroker/broker/message"
)

// This file writes what a client writes about a named timer: see PROTOCOL.md.

const expectedOn = "Nats-Expected-Last-Subject-Sequence-Subject"

// expected is the generation that an entry was stored in place of, for certain; zero where it expected none.
func expected(h message.Header) uint64 {
	values := h[message.HeaderExpected]
	if _, other := h[expectedOn]; len(values) != 1 || other {
		return 0
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// CancelHeader is the header that cancels a generation, if that is still the last entry. The word is the client's own.
func CancelHeader(generation uint64, word string) message.Header {
	h := message.Header{message.HeaderCancel: {word}}
	expect(h, generation)
	return h
}

// MoveHeader is the header that sets a generation anew, if that is still the last entry: all that the client wrote,
// with another time (Delay-For or Delay-Until, and its value) and word. What is moved is due then, so it is debounced no
// more.
func MoveHeader(old message.Header, name, value string, generation uint64, word string) message.Header {
	h := make(message.Header, len(old)+2)
	for k, values := range old {
		switch message.CanonicalName(k) {
		case message.HeaderFor, message.HeaderUntil, message.HeaderWord, message.HeaderMaxWait:
			continue
		}
		if k == message.HeaderNatsMsgID || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(k)), "nats-") {
			h[k] = values
		}
	}
	message.Put(h, name, value)
	message.Put(h, message.HeaderWord, word)
	expect(h, generation)
	return h
}
