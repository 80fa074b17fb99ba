package message

import (
	"cmp"
	"maps"
	"strconv"
)

// This file makes the headers of a message between lanes, at its target, and in its dead letter.

// NatsMsgID returns the id under which hop n of a message is published. n rises with every publish into our streams,
// retries included. If n did not rise, and a message passed one level twice, the level's stream would drop it as a
// duplicate.
func (r Request) NatsMsgID(n int) string { return r.ID + "/" + strconv.Itoa(n) }

// DeadMsgID returns the id of the message's dead letter. The id contains the hop, because a resent message may become a
// dead letter again immediately. Without the hop, the stream would drop the new letter as a duplicate of the old
// letter, which is about to be removed.
func (r Request) DeadMsgID() string { return r.NatsMsgID(r.Hop) + "/dead" }

// HopHeader returns the header of the message for its next publish into one of our lanes. The state headers replace
// those of the last hop, so the header does not grow. A named timer that is pending has a marker instead: see package
// entry.
func (r Request) HopHeader() Header {
	h := r.userHeader(8) // enough for a message that was never refused; no map is smaller than one of eight entries
	r.Identify(h, r.NatsMsgID(r.Hop+1))
	r.putKept(h)
	PutCount(h, HeaderHop, r.Hop+1)
	PutTime(h, HeaderRetryAt, r.RetryAt)
	Put(h, HeaderPaced, r.Paced)
	Put(h, HeaderReleased, r.Released)
	Put(h, HeaderLastError, r.LastError)
	Put(h, HeaderDeferred, r.Deferred)
	PutCount(h, HeaderAllowed, r.Allowed)
	r.origin.put(h, HeaderRollup)
	return h
}

// TargetHeader returns the header of the message at its target.
func (r Request) TargetHeader() Header {
	h := make(Header)
	r.PutTargetHeader(h)
	return h
}

// PutTargetHeader writes the header of the message at its target into h, which is empty.
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
	r.putKept(h)
	PutCount(h, HeaderHop, r.Hop)
	Put(h, HeaderErrorCode, string(p.Code))
	Put(h, HeaderError, p.Sentence)
	return h
}

// Identify writes the headers that identify the message, and the id under which a stream stores it.
func (r *Request) Identify(h Header, msgID string) {
	Put(h, HeaderNatsMsgID, msgID)
	Put(h, HeaderID, r.ID)
	PutTime(h, HeaderDue, r.Due)
	PutTime(h, HeaderAccepted, r.Accepted)
	Put(h, HeaderMsgID, r.MsgID)
	r.origin.identify(h)
}

// putKept writes the headers that a message keeps between lanes and as a dead letter.
func (r *Request) putKept(h Header) {
	Put(h, HeaderFormat, strconv.Itoa(formatForEach))
	Put(h, HeaderSubject, r.Subject)
	Put(h, HeaderDeliver, string(r.Mode))
	Put(h, HeaderTTL, r.TTL)
	PutTime(h, HeaderExpires, r.Expires)
	PutCount(h, HeaderMaxAttempts, r.MaxAttempts)
	Put(h, HeaderRateKey, r.RateKey)
	if r.Attempts > 0 {
		PutCount(h, HeaderAttempts, r.Attempts)
		PutTime(h, HeaderFirstFailure, r.FirstFailure)
		PutTime(h, HeaderLastFailure, r.LastFailure)
	}
}

// kept parses the results of Identify and putKept into r.
func (f *Fields) kept(r *Request) {
	r.ID = f.id()
	r.Subject = bounded(f.Text(HeaderSubject))
	r.Accepted = f.Moment(HeaderAccepted, Required)
	r.Due = f.Moment(HeaderDue, Required)
	r.Mode = f.mode()
	r.Expires = f.Moment(HeaderExpires, Optional)
	r.TTL = f.ttl()
	r.MsgID = f.Text(HeaderMsgID)
	r.MaxAttempts = f.Count(HeaderMaxAttempts, Optional)
	r.RateKey = f.rateKey()
	r.Attempts = f.Count(HeaderAttempts, Optional)
	r.FirstFailure = f.Moment(HeaderFirstFailure, Optional)
	r.LastFailure = f.Moment(HeaderLastFailure, Optional)
}

// ReadState parses the result of HopHeader. r has the rest of the request: the user's headers, the target, and the
// subject of the publish. The format is checked first. If there is a problem, ReadState returns r unchanged.
func (p Policy) ReadState(r Request, s Block) (Request, Fields) {
	f := Fields{Block: s}
	if format, newest := f.Count(HeaderFormat, Required), cmp.Or(p.Format, Format); format > newest {
		f.Problem = Problemf(NewerFormat, "format %d is newer than this broker's %d", format, newest)
	}
	in := Request{Target: r.Target, User: r.User}
	f.kept(&in)
	in.Subject = cmp.Or(in.Subject, r.Subject)
	in.Hop = f.Count(HeaderHop, Required)
	in.RetryAt = f.Moment(HeaderRetryAt, Optional)
	in.Paced, in.Released = f.Token(HeaderPaced), f.Token(HeaderReleased)
	in.LastError, in.Deferred = Reason(f.Text(HeaderLastError)), Reason(f.Text(HeaderDeferred))
	in.Allowed = f.Count(HeaderAllowed, Optional)
	in.origin = f.origin()
	if f.Problem != nil {
		return r, f
	}
	return in, f
}

// claimed returns the request of a message without proof that it is ours. The dead letter keeps the time and the
// options that the message claims, for an operator who knows that the message is ours. It does not keep the id that the
// message claims, which could be the id of another dead letter.
func (p Policy) claimed(r Request, s Block) Request {
	if claim, f := p.ReadState(r, s); f.Problem == nil {
		r.Due, r.Expires, r.Mode, r.TTL, r.MsgID = claim.Due, claim.Expires, claim.Mode, claim.TTL, claim.MsgID
		r.MaxAttempts = claim.MaxAttempts
	}
	return r
}
