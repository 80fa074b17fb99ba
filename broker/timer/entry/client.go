package entry

import (
	"strconv"
	"strings"

	"delaybroker/broker/message"
)

const headerExpectedSubject = "Nats-Expected-Last-Subject-Sequence-Subject"

// expectedGeneration returns the generation that the publish of an entry expected as the last entry of the subject;
// zero if the publish expected none.
func expectedGeneration(h message.Header) uint64 {
	values := h[message.HeaderExpected]
	if _, other := h[headerExpectedSubject]; len(values) != 1 || other {
		return 0
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// CancelHeader returns the header that cancels a generation, if the generation is still the last entry. Token
// identifies the request to its client.
func CancelHeader(generation uint64, token string) message.Header {
	h := message.Header{message.HeaderCancel: {token}}
	expect(h, generation)
	return h
}

// MoveHeader returns the header that moves a generation to another time, if the generation is still the last entry. The
// result has the old entry's headers, except for the time, the token, Delay-Max-Wait, and the Nats- headers other than
// Nats-Msg-Id. Name is Delay-For or Delay-Until, and value is the new time in the notation of that header.
func MoveHeader(old message.Header, name, value string, generation uint64, token string) message.Header {
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
	message.Put(h, message.HeaderWord, token)
	expect(h, generation)
	return h
}
