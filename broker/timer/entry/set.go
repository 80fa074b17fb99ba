package entry

import (
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// maxKey is the longest key, in bytes.
const maxKey = 128

const (
	// RepeatKey is the prefix of the key of a timer for one extra delivery of a series. The rest is derived from the
	// request's ID.
	RepeatKey = "fire-"
	// RepeatTime is the time for which the outcome of such a timer is kept, whatever the history of other timers: for this
	// long, a repeated request fires nothing more.
	RepeatTime = 5 * time.Minute
)

// Repeats reports whether a timer's subject is that of one extra delivery of a series.
func Repeats(n message.Names, subject string) bool {
	return strings.HasPrefix(n.Parse(subject).Token, RepeatKey)
}

// ParseSet parses an entry as the set of a timer, whoever wrote it. With a problem, it returns the fields that could be
// parsed. Unlike Parse, its problem does not report that the replaced entry is gone.
func ParseSet(p message.Policy, in message.Incoming) (Pending, *message.Problem) {
	if in.Header[message.HeaderFirst] != nil && in.Header[message.HeaderFired] != nil { // a round
		e := parseOurs(p, in, true)
		return e.Pending, e.Problem
	}
	m, problem := p.Begin(in)
	addr, s, set := p.Names.Parse(in.Subject), m.Fields.Block, Pending{Request: m.Request}
	if problem == nil {
		problem = checkSet(p, in, addr)
	}
	if problem != nil {
		return set, problem
	}
	set.Word = message.Reason(first(s.Delay[message.HeaderWord]))
	of := delivery(p, in, s)
	if addr.Schedule() {
		set.MsgID = first(s.Delay[message.HeaderMsgID])
		of = message.Origin{Scheduler: addr.Target, Rollup: rollsUp(s)}
	}
	if problem := s.Misspelt(); problem != nil {
		return set, problem
	}
	due, problem := dueIn(p, in, s)
	if problem == nil && recurs(s) {
		if set.Recurs, due, problem = startSeries(p, in, s, due); problem == nil {
			of.Series, of.Round = in.Sequence, 1
		}
	}
	if problem != nil {
		return set, problem
	}
	if addr.Schedule() {
		of.ScheduleNext = firesNext(set.Recurs, of.Round)
	}
	if set.MaxWait, problem = maxWait(p, in, s, due); problem != nil {
		return set, problem
	}
	m.Request = set.WithOrigin(of)
	target, problem := targetOf(p, addr, m)
	if problem == nil && set.Recurs != nil {
		problem = checkExpires(s)
	}
	set.Request, problem = p.Finish(m, due, target, problem)
	return set, problem
}

// checkSet judges the rules for a set only; the other rules are those of every request.
func checkSet(p message.Policy, in message.Incoming, addr message.Address) *message.Problem {
	switch {
	case addr.Form != message.FormTimer:
		return message.Problemf(message.BadTarget, "the subject %s is no named timer's: take it off the stream %s",
			message.Excerpt(in.Subject), in.Stream)
	case message.Relayed(in.Header):
		return message.Problemf(message.BadInternal,
			"the server put it there as the server's answer to a client's read of another message, which is no request")
	case addr.Schedule():
		return checkScheduleSet(p, in, addr)
	case in.Header[message.HeaderNatsTTL] != nil:
		return message.Problemf(message.BadOption,
			"with Nats-TTL the server forgets the timer before it fires: leave it out, or take Delay-Expires or Delay-TTL")
	}
	return checkKey(addr.Token)
}

// ParseKey judges the key of a timer.
func ParseKey(key string) *message.Problem {
	if strings.Contains(key, ".") {
		return message.Problemf(message.BadTimer, "the key %s: one token, without dots", message.Excerpt(key))
	}
	return checkKey(key)
}

// checkKey judges the key of a timer. The server stores any token.
func checkKey(key string) *message.Problem {
	switch {
	case len(key) > maxKey:
		return message.Problemf(message.BadTimer, "the key %s has %d bytes: at most %d", message.Excerpt(key), len(key),
			maxKey)
	case key == "" || key[0] == '_':
		return message.Problemf(message.BadTimer, "the key %s: want one token that does not begin with _",
			message.Excerpt(key))
	}
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c >= 0x7f || c == '*' || c == '>' {
			return message.Problemf(message.BadTimer, "the key %s holds byte 0x%02x: printable ASCII without * and >",
				message.Excerpt(key), c)
		}
	}
	return nil
}

// dueIn returns the due time of a set: a header contains it, the subject does not. It is zero if only a table
// determines it.
func dueIn(p message.Policy, in message.Incoming, s message.Block) (time.Time, *message.Problem) {
	wait, problem := s.One(message.HeaderFor)
	if problem != nil {
		return in.At, problem
	}
	until, problem := s.One(message.HeaderUntil)
	if problem != nil {
		return in.At, problem
	}
	switch hasFor, hasUntil := s.Delay[message.HeaderFor] != nil, s.Delay[message.HeaderUntil] != nil; {
	case s.Delay[message.HeaderCancel] != nil:
		return in.At, message.Problemf(message.TimeTwice, "it sets a timer and cancels it: Delay-Cancel, or a time")
	case hasFor && hasUntil:
		return in.At, message.Problemf(message.TimeTwice, "Delay-For and Delay-Until: one of them")
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
			"it neither sets a timer nor cancels it: Delay-For, Delay-Until, Delay-Every, Delay-Cron or Delay-Cancel")
	}
	d, err := levels.ParseDuration(wait)
	if err != nil {
		return in.At, message.Problemf(message.BadTime, "Delay-For: %v", err)
	}
	return in.At.Add(d), p.CheckDelay(in.At, in.At.Add(d))
}

// maxWait returns the Delay-Max-Wait of a set that is due at a time; zero for none.
func maxWait(p message.Policy, in message.Incoming, s message.Block, due time.Time) (time.Duration, *message.Problem) {
	asked, problem := s.One(message.HeaderMaxWait)
	switch {
	case problem != nil || s.Delay[message.HeaderMaxWait] == nil:
		return 0, problem
	case recurs(s):
		return 0, message.Problemf(message.BadTimer, "Delay-Max-Wait of what recurs: leave it out, or %s", inTable(s))
	case s.Delay[message.HeaderFor] == nil:
		return 0, message.Problemf(message.BadTimer, "Delay-Max-Wait without Delay-For: that says how long each set waits")
	}
	most, err := levels.ParseDuration(asked)
	switch {
	case err != nil:
		return 0, message.Problemf(message.BadTime, "Delay-Max-Wait: %v", err)
	case most <= 0 || most < due.Sub(in.At):
		return 0, message.Problemf(message.BadTimer, "Delay-Max-Wait %s: want more than zero, and no less than Delay-For",
			message.Excerpt(asked))
	}
	return most, p.CheckDelay(in.At, in.At.Add(most))
}

// targetOf returns the target of a set. For a schedule, a header under our seal contains it: package schedules has
// checked whether the client may name it.
func targetOf(p message.Policy, addr message.Address, m message.Reading) (string, *message.Problem) {
	if !addr.Schedule() {
		return p.TargetOf(addr, m)
	}
	target, problem := m.Fields.One(message.HeaderTarget)
	if problem == nil {
		problem = p.CheckTarget(target)
	}
	if problem != nil {
		return "", problem
	}
	return target, nil
}

// targetIn returns the target in a subject or, for a schedule, in its header.
func targetIn(addr message.Address, h message.Header) string {
	if addr.Schedule() {
		return first(h[message.HeaderTarget])
	}
	return addr.Target
}
