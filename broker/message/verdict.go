package message

import (
	"strconv"
	"strings"
)

// This file writes what a client writes about a named timer: see PROTOCOL.md.

const expectedOn = "Nats-Expected-Last-Subject-Sequence-Subject"

// expected is the generation that an entry was stored in place of, for certain; zero where it expected none.
func expected(h Header) uint64 {
	values := h[HeaderExpected]
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
func CancelHeader(generation uint64, word string) Header {
	return Header{
		HeaderCancel:   {word},
		HeaderExpected: {strconv.FormatUint(generation, 10)},
	}
}

// MoveHeader is the header that sets a generation anew, if that is still the last entry: all that the client wrote,
// with another time (Delay-For or Delay-Until, and its value) and word.
func MoveHeader(old Header, name, value string, generation uint64, word string) Header {
	h := make(Header, len(old)+2)
	for k, values := range old {
		switch canonicalName(k) {
		case HeaderFor, HeaderUntil, HeaderWord:
			continue
		}
		if k == headerNatsMsgID || !strings.HasPrefix(plainName(k), "nats-") {
			h[k] = values
		}
	}
	set(h, name, value)
	set(h, HeaderWord, word)
	set(h, HeaderExpected, strconv.FormatUint(generation, 10))
	return h
}

// ParseKey judges the key of a timer.
func ParseKey(key string) *Problem {
	if strings.Contains(key, ".") {
		return Problemf(BadTimer, "the key %s: one token, without dots", excerpt(key))
	}
	return checkKey(key)
}
