package message

import (
	"strconv"
	"time"
)

// Arrival has values from the headers of a delivered message.
type Arrival struct {
	ID       string
	Due      time.Time
	Accepted time.Time // time at which the first stream stored the message
	MsgID    string    // the client's own Nats-Msg-Id, or empty
	Attempts int       // number of refusals by the target before this delivery

	// Series and Round are those of Origin.
	Series uint64
	Round  int
}

// ParseArrival parses the headers of a message at its target. It returns false unless the message has exactly one
// Delay-Id, one valid Delay-Due and one valid Delay-Accepted. The headers are not authenticated: anyone who may publish
// to the target can write them.
func ParseArrival(h Header) (Arrival, bool) {
	due, dueProblem := ParseTime(soleValue(h, HeaderDue))
	accepted, acceptedProblem := ParseTime(soleValue(h, HeaderAccepted))
	id := soleValue(h, HeaderID)
	if dueProblem != nil || acceptedProblem != nil || id == "" {
		return Arrival{}, false
	}
	attempts, err := strconv.Atoi(soleValue(h, HeaderAttempts))
	if err != nil || attempts < 0 {
		attempts = 0
	}
	a := Arrival{ID: id, Due: due, Accepted: accepted, MsgID: soleValue(h, HeaderMsgID), Attempts: attempts}
	series, seriesErr := strconv.ParseUint(soleValue(h, HeaderSeries), 10, 64)
	if round, err := strconv.Atoi(soleValue(h, HeaderRound)); err == nil && seriesErr == nil && round > 0 {
		a.Series, a.Round = series, round
	}
	return a, true
}

// soleValue returns the value of a header, or "" if the header is missing or duplicate.
func soleValue(h Header, name string) string {
	if vs := h[name]; len(vs) == 1 {
		return vs[0]
	}
	return ""
}
