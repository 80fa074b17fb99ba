package message

import "time"

// Letter is a dead letter that was read from its stream.
type Letter struct {
	// Request is the part of the message's request that could be parsed. Its target is empty if the request had no allowed
	// target, or if the target begins with a part of the time in the subject (see hasTimePart).
	Request
	Code     Code
	Sentence string // the problem, and the change that repairs it

	DueEdited bool // an operator has set Due: see Policy.Edit
}

// DoubtLetter returns a problem unless a broker wrote the dead letter. It also returns a problem for a letter with the
// code BadInternal: a broker wrote this letter, but perhaps not the message in it.
func (p Policy) DoubtLetter(in Incoming) *Problem {
	if problem := p.Keys.Doubt(in); problem != nil {
		return problem
	}
	if code, _, _ := p.Names.ParseDead(in.Subject); code == BadInternal {
		return Problemf(BadInternal, "the writer of the message is unknown, so the headers of the letter may be forged")
	}
	return nil
}

// ParseLetter parses a dead letter, whose header DeadHeader has made. If there is a problem, the letter has the part
// that could be parsed.
func (n Names) ParseLetter(in Incoming) (Letter, *Problem) {
	var l Letter
	var ok bool
	if l.Code, l.Target, ok = n.ParseDead(in.Subject); !ok {
		return l, Problemf(BadInternal, "the subject %s is not the subject of a dead letter", Excerpt(in.Subject))
	}
	if l.Code == BadTime && hasTimePart(l.Target) {
		l.Target = ""
	}
	if in.Undecodable {
		return l, Problemf(BadHeaders, "the headers of the dead letter cannot be decoded")
	}
	s, problem := SplitHeader(in.Header, true)
	l.User = s.User
	f := Fields{Block: s, Problem: problem}
	l.Request = f.readLetter(l.Request)
	l.Sentence = f.Text(HeaderError)
	if format := f.count(HeaderFormat); format > Format {
		return l, Problemf(NewerFormat, "format %d is newer than this program's %d", format, Format)
	}
	return l, f.Problem
}

// DueKnown reports whether Due is the requested due time, or an operator has set it. Otherwise, Due may be the time of
// acceptance.
func (l Letter) DueKnown() bool {
	if l.DueEdited {
		return true
	}
	switch l.Code {
	case Undelivered, Expired, TooLarge, BadTarget:
		return true
	case BadInternal: // Due may have the claim of the headers, which may be forged: see Policy.claimedRequest
		return l.Due.After(l.Accepted)
	}
	return false
}

// Refusals returns the refusals of the message, the oldest first. The reason of the last one is the letter's sentence.
func (l Letter) Refusals() []Refusal {
	all := l.Request.Refusals()
	if n := len(all); n > 0 {
		all[n-1].Reason = l.Sentence
	}
	return all
}

// ResentHeader returns the header with which the message goes back into a lane. The number of attempts is zero again.
// The Nats-Msg-Id depends only on the letter and the target, so the stream stores repeated resends within the duplicate
// window only once. No hop has such an id, so if the stream reports a duplicate, the letter was resent before.
func (l Letter) ResentHeader() Header {
	r := l.Request
	r.Attempts, r.FirstFailure, r.LastFailure, r.RetryAt, r.Reservation = 0, time.Time{}, time.Time{}, time.Time{}, ""
	r.EarlierRefusals = ""
	h := r.HopHeader()
	Put(h, HeaderNatsMsgID, r.NatsMsgID(r.Hop+1)+"/resent/"+r.Target)
	return h
}
