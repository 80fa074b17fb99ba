package message

import (
	"strconv"
	"time"
)

// Arrival has the broker's headers in a delivered message: the result of TargetHeader, as the consumer reads it.
type Arrival struct {
	ID       string
	Due      time.Time
	Accepted time.Time // when the first stream stored it
	MsgID    string    // the client's own Nats-Msg-Id, or empty
	Attempts int       // refusals by the target before this delivery

	// For a timer that recurs: the generation of its first set, and the number of the round, from 1. Otherwise zero.
	Series uint64
	Round  int
}

// ParseArrival parses the headers of a message at its target. It returns false if no broker delivered the message. The
// headers are not authenticated: anyone who may publish to the target can write them.
func ParseArrival(h Header) (Arrival, bool) {
	due, bad := ParseTime(only(h, HeaderDue))
	accepted, worse := ParseTime(only(h, HeaderAccepted))
	id := only(h, HeaderID)
	if bad != nil || worse != nil || id == "" {
		return Arrival{}, false
	}
	attempts, err := strconv.Atoi(only(h, HeaderAttempts))
	if err != nil || attempts < 0 {
		attempts = 0
	}
	a := Arrival{ID: id, Due: due, Accepted: accepted, MsgID: only(h, HeaderMsgID), Attempts: attempts}
	series, err := strconv.ParseUint(only(h, HeaderSeries), 10, 64)
	if round, worse := strconv.Atoi(only(h, HeaderRound)); err == nil && worse == nil && round > 0 {
		a.Series, a.Round = series, round
	}
	return a, true
}

// only returns the value of a header, or "" if the header is missing or duplicate.
func only(h Header, name string) string {
	if vs := h[name]; len(vs) == 1 {
		return vs[0]
	}
	return ""
}
