package message

import (
	"cmp"
	"net/url"
	"strings"
	"time"
)

// Parse parses a stored message of a lane, except for the entries and markers of named timers: see package entry. If
// there is a problem, the request has the part that could be parsed.
func (p Policy) Parse(in Incoming) (Request, *Problem) {
	addr := p.Names.Parse(in.Subject)
	if !addr.StoredByBroker() {
		return p.parseClient(in, addr)
	}
	m, problem := p.ParseHop(in, InLane)
	if problem == nil && m.Fields.Delay[HeaderTimer] != nil {
		problem = Problemf(BadInternal, "the stored message is the marker of a named timer")
	}
	return m.Request, cmp.Or(problem, m.TargetProblem)
}

// PartialParse is a message of which only a part has been parsed.
type PartialParse struct {
	Request       Request
	Fields        Fields
	TargetProblem *Problem // nil if the policy allows the target in the subject; always nil for a schedule
}

// ParseCommon parses the target in the subject and splits the headers, for any message of a lane.
func (p Policy) ParseCommon(in Incoming) (m PartialParse, problem *Problem) {
	addr := p.Names.Parse(in.Subject)
	m.Request = Request{
		ID:       ID{Stream: in.Stream, Sequence: in.Sequence, At: in.At}.String(),
		Subject:  EscapeSubject(in.Subject),
		Accepted: in.At,
		Due:      in.At,
	}
	if !addr.IsSchedule() { // the target of a schedule is in a header
		if m.TargetProblem = p.CheckTarget(addr.Target); m.TargetProblem == nil {
			m.Request.Target = addr.Target
		}
	}
	m.Fields.Block, problem = SplitHeader(in.Header, addr.StoredByBroker())
	m.Request.User = m.Fields.User
	if in.Undecodable {
		problem = Problemf(BadHeaders, "the headers cannot be decoded: each line is \"Name: value\" ended by CRLF")
	}
	if problem == nil {
		m.Request.MsgID = m.Fields.MsgID
	}
	return m, problem
}

// ParseHop parses a message between lanes, or a marker if place is InMarker. It does not return the problem of a target
// that is not allowed: see m.TargetProblem.
func (p Policy) ParseHop(in Incoming, place Place) (m PartialParse, problem *Problem) {
	m, problem = p.ParseCommon(in)
	if doubt := p.Keys.Doubt(in); doubt != nil {
		m.Request = p.claimedRequest(m.Request, m.Fields.Block)
		return m, doubt
	}
	if problem != nil {
		return m, problem
	}
	m.Request, m.Fields = p.ReadState(m.Request, m.Fields.Block, place)
	return m, m.Fields.Problem
}

// parseClient parses a message on a client's subject. It ignores state headers.
func (p Policy) parseClient(in Incoming, addr Address) (Request, *Problem) {
	m, problem := p.ParseCommon(in)
	switch {
	case problem != nil:
		return m.Request, problem
	case addr.Form == FormForeign, addr.Form == FormTimer:
		return m.Request, Problemf(BadTarget,
			"the subject %s does not belong in the stream %s: remove the subject from the stream",
			Excerpt(in.Subject), in.Stream)
	}
	if name := m.Fields.FirstHeader(timerHeaders...); name != "" {
		return m.Request, Problemf(BadOption,
			"%s is for named timers: only a message with a key can be set again, be cancelled or recur", name)
	}
	if problem := m.Fields.CheckSpelling(); problem != nil {
		return m.Request, problem
	}
	due, problem := p.due(in, addr, m.Fields.Block)
	if problem != nil {
		return m.Request, problem
	}
	target, problem := p.ClientTarget(addr, m)
	return p.ParseOptions(m, due, target, problem)
}

// ParseOptions parses the options of a client's message with the given due time. Problem is the problem of the target,
// or nil. Even if the target has a problem, ParseOptions parses the options except Delay-Max-Attempts, because an
// operator may resend the dead letter to another target.
func (p Policy) ParseOptions(m PartialParse, due time.Time, target string, problem *Problem) (Request, *Problem) {
	r, b := m.Request, m.Fields.Block
	due, spreadProblem := p.spread(r, due, b)
	if due.After(r.Accepted) {
		r.Due = due
	}
	r.Target = target
	r, optionProblem := p.readOptions(r, b)
	return r, cmp.Or(problem, spreadProblem, optionProblem)
}

// ClientTarget returns the target of a client's message. The target is in the subject or, if HeaderTargets allows that,
// in Delay-Target on the bare subject of a level.
func (p Policy) ClientTarget(addr Address, m PartialParse) (string, *Problem) {
	headerTarget, problem := m.Fields.Value(HeaderTarget)
	if problem != nil {
		return "", problem
	}
	switch {
	case headerTarget == "":
		if m.TargetProblem != nil {
			return "", m.TargetProblem
		}
		return addr.Target, nil
	case addr.Target != "":
		return "", Problemf(BadTarget, "the subject has a target, and so has Delay-Target: leave the header out")
	case !matchAny(p.HeaderTargets, headerTarget):
		return "", Problemf(BadTarget,
			"Delay-Target %s is not among the targets that a header may name (DELAY_HEADER_TARGETS)", Excerpt(headerTarget))
	}
	if problem := p.CheckTarget(headerTarget); problem != nil {
		return "", problem
	}
	return headerTarget, nil
}

// EscapeSubject converts a client's subject to a header value of at most 256 bytes.
func EscapeSubject(s string) string { return truncateEscaped(url.PathEscape(s)) }

// maxEscaped is the maximum length of an escaped subject, in bytes.
const maxEscaped = 256

// UnescapeSubject returns the subject that EscapeSubject has escaped; empty if it may have been truncated.
func UnescapeSubject(escaped string) string {
	subject, err := url.PathUnescape(escaped)
	if err != nil || len(escaped) > maxEscaped-len("%xx") {
		return ""
	}
	return subject
}

// truncateEscaped truncates an escaped subject to maxEscaped bytes, or to fewer bytes if it would otherwise end within
// an escape.
func truncateEscaped(escaped string) string {
	if len(escaped) <= maxEscaped {
		return escaped
	}
	cut := escaped[:maxEscaped]
	if i := strings.LastIndexByte(cut, '%'); i > maxEscaped-3 {
		cut = cut[:i]
	}
	return cut
}
