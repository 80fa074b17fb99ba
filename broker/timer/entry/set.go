package entry

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

const (
	maxKey   = 128 // maximum length of a key, in bytes
	maxToken = 128 // maximum length of a token, in bytes
	// ExtraKey begins the key of each timer that delivers a series one extra time.
	ExtraKey = "fire-"
	// ExtraTime is the minimum time for which the outcome of such a timer is kept. During this time, a repeated request
	// causes no second delivery.
	ExtraTime = 5 * time.Minute
)

// IsExtra reports whether the key in a subject begins with ExtraKey.
func IsExtra(n message.Names, subject string) bool {
	return strings.HasPrefix(n.Parse(subject).Token, ExtraKey)
}

// ParseSet parses an entry as the set of a timer, written by a client or a broker. If there is a problem, the result
// has the fields that could be parsed.
func ParseSet(p message.Policy, in message.Incoming) (Pending, *message.Problem) {
	if in.Header[message.HeaderFirst] != nil && in.Header[message.HeaderFired] != nil { // a round
		e := parseSealed(p, in, true)
		return e.Pending, e.Problem
	}
	m, problem := p.ParseCommon(in)
	addr, s, set := p.Names.Parse(in.Subject), m.Fields.Block, Pending{Request: m.Request}
	if problem == nil {
		problem = checkSet(p, in, addr)
	}
	if problem != nil {
		return set, problem
	}
	set.Token = message.Reason(firstValue(s.Delay[message.HeaderWord]))
	origin := delivery(p, in, s)
	if addr.IsSchedule() {
		set.MsgID = firstValue(s.Delay[message.HeaderMsgID])
		origin = message.Origin{Scheduler: addr.Target, Rollup: hasRollup(s)}
	}
	if problem := s.CheckSpelling(); problem != nil {
		return set, problem
	}
	due, problem := parseDue(p, in, s)
	if problem == nil && recurs(s) {
		if set.Series, due, problem = startSeries(p, in, s, due); problem == nil {
			origin.Series, origin.Round = in.Sequence, 1
			origin.PauseAfter, problem = pauseAfter(m.Request, s)
		}
	}
	if problem != nil {
		return set, problem
	}
	if addr.IsSchedule() {
		origin.ScheduleNext = nextFiring(set.Series, origin.Round)
	}
	if set.MaxWait, problem = maxWait(p, in, s, due); problem != nil {
		return set, problem
	}
	if s.Delay[message.HeaderSpread] != nil && (set.Series != nil || set.MaxWait > 0) {
		return set, message.Problemf(message.BadTimer, "Delay-Spread of a timer that recurs or has Delay-Max-Wait: leave it "+
			"out; the rounds of a series have Delay-Jitter")
	}
	m.Request = set.WithOrigin(origin)
	target, problem := targetOf(p, addr, m)
	if problem == nil && set.Series != nil {
		problem = checkExpires(s)
	}
	set.Request, problem = p.ParseOptions(m, due, target, problem)
	return set, problem
}

func checkSet(p message.Policy, in message.Incoming, addr message.Address) *message.Problem {
	switch {
	case addr.Form != message.FormTimer:
		return message.Problemf(message.BadTarget,
			"the subject %s is not that of a named timer: remove it from the subjects of the stream %s",
			message.Excerpt(in.Subject), in.Stream)
	case message.IsServerAnswer(in.Header):
		return message.Problemf(message.BadInternal,
			"the entry is the server's answer to a client's read of another message, and not a request")
	case addr.IsSchedule() && !sealed(p, in): // a client could name any target in the header of an unsealed entry
		return message.Problemf(message.BadTimer, "keys that begin with _ are reserved for the broker: publish on the "+
			"schedule's subject, %s", message.Excerpt(addr.Target))
	case addr.IsSchedule():
		return CheckSchedule(p, addr.Target)
	case in.Header[message.HeaderNatsTTL] != nil:
		return message.Problemf(message.BadOption,
			"with Nats-TTL the server removes the timer before it fires: leave Nats-TTL out, or use Delay-Expires or Delay-TTL")
	}
	return CheckKey(addr.Token)
}

// CheckToken returns an error if a token cannot identify a request. An empty token is valid: it identifies none.
func CheckToken(token string) error {
	if len(token) > maxToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("the word of %d bytes: want printable ASCII without spaces, at most %d bytes", len(token), maxToken)
	}
	return nil
}

// CheckKey returns the problem of a timer's key; nil for a valid key.
func CheckKey(key string) *message.Problem {
	switch {
	case strings.Contains(key, "."):
		return message.Problemf(message.BadTimer, "the key %s: want one token without dots", message.Excerpt(key))
	case len(key) > maxKey:
		return message.Problemf(message.BadTimer, "the key %s has %d bytes: at most %d", message.Excerpt(key), len(key),
			maxKey)
	case key == "" || key[0] == '_':
		return message.Problemf(message.BadTimer, "the key %s: want one token that does not begin with _",
			message.Excerpt(key))
	}
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c >= 0x7f || c == '*' || c == '>' {
			return message.Problemf(message.BadTimer, "the key %s holds byte 0x%02x: want printable ASCII without * and >",
				message.Excerpt(key), c)
		}
	}
	return nil
}

// parseDue returns the due time by the headers Delay-For and Delay-Until of a set; zero if the set has neither, and has
// a time table.
func parseDue(p message.Policy, in message.Incoming, s message.Block) (time.Time, *message.Problem) {
	wait, problem := s.Value(message.HeaderFor)
	until, untilProblem := s.Value(message.HeaderUntil)
	if problem = cmp.Or(problem, untilProblem); problem != nil {
		return in.At, problem
	}
	switch hasFor, hasUntil := s.Delay[message.HeaderFor] != nil, s.Delay[message.HeaderUntil] != nil; {
	case s.Delay[message.HeaderCancel] != nil:
		return in.At, message.Problemf(message.TimeTwice,
			"the entry both sets a timer and cancels it: give Delay-Cancel, or a time")
	case hasFor && hasUntil:
		return in.At, message.Problemf(message.TimeTwice, "Delay-For and Delay-Until exclude each other: give one of them")
	case hasUntil:
		due, problem := message.ParseTime(until)
		if problem != nil {
			return in.At, problem
		}
		return due, p.CheckDelay(in.At, due)
	case !hasFor && recurs(s):
		return time.Time{}, nil
	case !hasFor:
		return in.At, message.Problemf(message.BadTimer,
			"the entry neither sets nor cancels a timer: give Delay-For, Delay-Until, Delay-Every, Delay-Cron or Delay-Cancel")
	}
	d, err := levels.ParseDuration(wait)
	if err != nil {
		return in.At, message.Problemf(message.BadTime, "Delay-For: %v", err)
	}
	return in.At.Add(d), p.CheckDelay(in.At, in.At.Add(d))
}

// maxWait returns the Delay-Max-Wait of a set, or zero if the set has none. Due is the due time by Delay-For.
func maxWait(p message.Policy, in message.Incoming, s message.Block, due time.Time) (time.Duration, *message.Problem) {
	value, problem := s.Value(message.HeaderMaxWait)
	switch {
	case problem != nil || s.Delay[message.HeaderMaxWait] == nil:
		return 0, problem
	case recurs(s):
		return 0, message.Problemf(message.BadTimer, "Delay-Max-Wait of a recurring timer: leave it out, or %s",
			firstTableHeader(s))
	case s.Delay[message.HeaderFor] == nil:
		return 0, message.Problemf(message.BadTimer, "Delay-Max-Wait without Delay-For: add Delay-For")
	}
	limit, err := levels.ParseDuration(value)
	switch {
	case err != nil:
		return 0, message.Problemf(message.BadTime, "Delay-Max-Wait: %v", err)
	case limit <= 0 || limit < due.Sub(in.At):
		return 0, message.Problemf(message.BadTimer, "Delay-Max-Wait %s: want more than zero, and at least Delay-For",
			message.Excerpt(value))
	}
	return limit, p.CheckDelay(in.At, in.At.Add(limit))
}

// targetOf returns the target of a set. For a schedule, the target is in a sealed header. Package schedules has checked
// that the client may use it.
func targetOf(p message.Policy, addr message.Address, m message.PartialParse) (string, *message.Problem) {
	if !addr.IsSchedule() {
		return p.ClientTarget(addr, m)
	}
	target, problem := m.Fields.Value(message.HeaderTarget)
	if problem = cmp.Or(problem, p.CheckTarget(target)); problem != nil {
		return "", problem
	}
	return target, nil
}

const headerExpectedSubject = "Nats-Expected-Last-Subject-Sequence-Subject"

// expectedGeneration returns the generation in the header Nats-Expected-Last-Subject-Sequence of an entry. It is zero
// if the header is missing, invalid, or about another subject.
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
// result lacks the old entry's time, Delay-Spread, token, Delay-Max-Wait and Nats- headers, and keeps all its other
// headers and its Nats-Msg-Id. Name is Delay-For or Delay-Until, and value is the new time in that header's notation.
func MoveHeader(old message.Header, name, value string, generation uint64, token string) message.Header {
	h := make(message.Header, len(old)+2)
	for k, values := range old {
		switch message.CanonicalName(k) {
		case message.HeaderFor, message.HeaderUntil, message.HeaderWord, message.HeaderMaxWait, message.HeaderSpread:
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
