package message

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// This file makes the headers of a message between lanes, at its target, and in its dead letter. It parses the headers
// of a message between lanes.

// NatsMsgID returns the id under which the broker publishes hop n of a message. Each move to a lane, including a retry
// lane, has another n. Otherwise, if a message passed a level twice, the level's stream would drop the second publish
// as a duplicate.
func (r Request) NatsMsgID(n int) string { return r.ID + "/" + strconv.Itoa(n) }

// DeadMsgID returns the id of the message's dead letter. The id contains the hop, because a resent message may become a
// dead letter again immediately. Without the hop, the stream would drop the new letter as a duplicate of the old one.
// Then the resend would remove the old letter, and the message would be lost.
func (r Request) DeadMsgID() string { return r.NatsMsgID(r.Hop) + "/dead" }

// HopHeader returns the header of the message for its next publish into a lane. A named timer that is pending has a
// marker instead: see package entry.
func (r Request) HopHeader() Header {
	h := r.userHeader(8) // enough for most messages
	r.Identify(h, r.NatsMsgID(r.Hop+1))
	r.putLetterState(h)
	PutCount(h, HeaderHop, r.Hop+1)
	PutTime(h, HeaderRetryAt, r.RetryAt)
	Put(h, HeaderPaced, r.Reservation)
	Put(h, HeaderReleased, r.ResumedPause)
	Put(h, HeaderLastError, r.LastError)
	Put(h, HeaderDeferred, r.DeferralReason)
	PutCount(h, HeaderAllowed, r.AllowedRefusals)
	return h
}

// TargetHeader returns the header of the message at its target.
func (r Request) TargetHeader() Header {
	h := make(Header)
	r.PutTargetHeader(h)
	return h
}

// PutTargetHeader writes the headers that the message has at its target. H must be empty.
func (r *Request) PutTargetHeader(h Header) {
	maps.Copy(h, r.User)
	r.Identify(h, r.ID)
	r.origin.put(h, headerRollup)
	Put(h, HeaderNatsTTL, r.TTL)
	PutCount(h, HeaderAttempts, r.Attempts)
}

// DeadHeader returns the header of the message's dead letter.
func (r Request) DeadHeader(p *Problem) Header {
	h := r.userHeader(20)
	r.Identify(h, r.DeadMsgID())
	r.putLetterState(h)
	PutCount(h, HeaderHop, r.Hop)
	Put(h, HeaderErrorCode, string(p.Code))
	Put(h, HeaderError, p.Sentence)
	return h
}

// Identify writes the headers that identify the message, and the Nats-Msg-Id under which a stream stores it.
func (r *Request) Identify(h Header, msgID string) {
	Put(h, HeaderNatsMsgID, msgID)
	Put(h, HeaderID, r.ID)
	PutTime(h, HeaderDue, r.Due)
	PutTime(h, HeaderAccepted, r.Accepted)
	Put(h, HeaderMsgID, r.MsgID)
	r.origin.identify(h)
}

// putLetterState writes the headers that a message has both between lanes and as a dead letter, except for those of
// Identify.
func (r *Request) putLetterState(h Header) {
	Put(h, HeaderFormat, strconv.Itoa(formatBasic))
	Put(h, HeaderSubject, r.Subject)
	Put(h, HeaderDeliver, string(r.Mode))
	Put(h, HeaderTTL, r.TTL)
	PutTime(h, HeaderExpires, r.Expires)
	PutCount(h, HeaderMaxAttempts, r.MaxAttempts)
	Put(h, HeaderRateKey, r.RateKey)
	r.origin.put(h, HeaderRollup)
	if r.Attempts > 0 {
		PutCount(h, HeaderAttempts, r.Attempts)
		PutTime(h, HeaderFirstFailure, r.FirstFailure)
		PutTime(h, HeaderLastFailure, r.LastFailure)
	}
}

// parseLetterState parses the headers that Identify and putLetterState write, except for the format.
func (f *Fields) parseLetterState(r *Request) {
	r.ID = f.checked(HeaderID, func(v string) bool {
		_, err := ParseID(v)
		return err == nil
	})
	r.Subject = truncateEscaped(f.Text(HeaderSubject))
	r.Accepted = f.Moment(HeaderAccepted, Required)
	r.Due = f.Moment(HeaderDue, Required)
	r.Mode = Mode(f.checked(HeaderDeliver, func(v string) bool { return v == "" || slices.Contains(Modes(), Mode(v)) }))
	r.Expires = f.Moment(HeaderExpires, Optional)
	r.TTL = f.checked(HeaderTTL, validTTL)
	r.MsgID = f.Text(HeaderMsgID)
	r.MaxAttempts = f.Count(HeaderMaxAttempts, Optional)
	r.RateKey = f.checked(HeaderRateKey, func(v string) bool { return v == "" || validRateKey(v) })
	r.Attempts = f.Count(HeaderAttempts, Optional)
	r.FirstFailure = f.Moment(HeaderFirstFailure, Optional)
	r.LastFailure = f.Moment(HeaderLastFailure, Optional)
	r.origin = f.origin()
}

// ReadState parses the headers that HopHeader writes. R has the client's headers and the target. The subject in r is
// the default for a missing Delay-Subject. If there is a problem, ReadState returns r unchanged. A newer format is the
// problem NewerFormat, even if there are other problems.
func (p Policy) ReadState(r Request, b Block) (Request, Fields) {
	f := Fields{Block: b}
	if format, newest := f.Count(HeaderFormat, Required), cmp.Or(p.Format, Format); format > newest {
		f.Problem = Problemf(NewerFormat, "format %d is newer than this broker's %d", format, newest)
	}
	state := Request{Target: r.Target, User: r.User}
	f.parseLetterState(&state)
	state.Subject = cmp.Or(state.Subject, r.Subject)
	state.Hop = f.Count(HeaderHop, Required)
	state.RetryAt = f.Moment(HeaderRetryAt, Optional)
	state.Reservation, state.ResumedPause = f.Token(HeaderPaced), f.Token(HeaderReleased)
	state.LastError, state.DeferralReason = Reason(f.Text(HeaderLastError)), Reason(f.Text(HeaderDeferred))
	state.AllowedRefusals = f.Count(HeaderAllowed, Optional)
	if f.Problem != nil {
		return r, f
	}
	return state, f
}

// claimedRequest returns the request of a message without a valid seal. The dead letter gets the time and the options
// in the state headers, for an operator who knows that a broker wrote the message. The dead letter does not get the id
// in these headers, which could be the id of another dead letter.
func (p Policy) claimedRequest(r Request, b Block) Request {
	if claim, f := p.ReadState(r, b); f.Problem == nil {
		r.Due, r.Expires, r.Mode, r.TTL, r.MsgID = claim.Due, claim.Expires, claim.Mode, claim.TTL, claim.MsgID
		r.MaxAttempts, r.RateKey = claim.MaxAttempts, claim.RateKey
	}
	return r
}
