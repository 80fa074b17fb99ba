package message

import (
	"cmp"
	"strconv"
)

// This file has the headers with which a message travels: between lanes, at its target, and among the dead letters.

// NatsMsgID is the id under which hop n of a message is published. n rises with every publish into our streams, retries
// included: a message that passes one level twice under one id would be answered "duplicate" and be lost.
func (r Request) NatsMsgID(n int) string { return r.ID + "/" + strconv.Itoa(n) }

// DeadMsgID is the id of the message's dead letter. The hop is part of it. Otherwise, if a letter is resent and its
// message becomes a dead letter again at once, the new letter would be dropped as a copy of the old one, which is about
// to be removed.
func (r Request) DeadMsgID() string { return r.NatsMsgID(r.Hop) + "/dead" }

// HopHeader is the header of the message on its next publish into one of our lanes. Its state headers replace those of
// the last hop, so the header does not grow on the way. A named timer that is pending has a marker instead: see package
// entry.
func (r Request) HopHeader() Header {
	h := r.userHeader(8) // of a message that was never refused; a map of eight entries is the cheapest
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

// TargetHeader is the header of the message at its target.
func (r Request) TargetHeader() Header {
	h := r.userHeader(4)
	r.Identify(h, r.ID)
	r.origin.put(h, headerRollup)
	Put(h, HeaderNatsTTL, r.TTL)
	PutCount(h, HeaderAttempts, r.Attempts)
	return h
}

// DeadHeader is the header of the message's dead letter.
func (r Request) DeadHeader(p *Problem) Header {
	h := r.userHeader(20)
	r.Identify(h, r.DeadMsgID())
	r.putKept(h)
	PutCount(h, HeaderHop, r.Hop)
	Put(h, HeaderErrorCode, string(p.Code))
	Put(h, HeaderError, p.Sentence)
	return h
}

// Identify writes which message it is, under an id for the stream that stores it.
func (r Request) Identify(h Header, msgID string) {
	Put(h, HeaderNatsMsgID, msgID)
	Put(h, HeaderID, r.ID)
	PutTime(h, HeaderDue, r.Due)
	PutTime(h, HeaderAccepted, r.Accepted)
	Put(h, HeaderMsgID, r.MsgID)
	r.origin.identify(h)
}

// putKept writes what a message keeps between lanes and as a dead letter.
func (r Request) putKept(h Header) {
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

// kept reads the results of Identify and putKept into r.
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

// ReadState reads the result of HopHeader. R has what is known besides: the user's headers, the target, and where the
// message was published. A format that is too new is the first problem. On a problem the request is r.
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

// claimed is a request without a proof. Its time and mode are kept in its dead letter, for an operator who knows that
// it is ours after all. The id that it claims does not count, or it could take the place of another dead letter.
func (p Policy) claimed(r Request, s Block) Request {
	if claim, f := p.ReadState(r, s); f.Problem == nil {
		r.Due, r.Expires, r.Mode, r.TTL, r.MsgID = claim.Due, claim.Expires, claim.Mode, claim.TTL, claim.MsgID
		r.MaxAttempts = claim.MaxAttempts
	}
	return r
}
