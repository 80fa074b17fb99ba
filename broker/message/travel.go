package message

import (
	"cmp"
	"maps"
	"strconv"
)

// This file makes the headers of a message between lanes, at its target, and in its dead letter.

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
	r.Hop++
	h := r.userHeader(4)
	Put(h, HeaderNatsMsgID, r.NatsMsgID(r.Hop))
	r.putState(h, laneRows)
	return h
}

// MarkerHeader returns the header of a marker for its next publish into a level. Its Nats-Msg-Id differs from that of
// the fired message in the same level.
func (r Request) MarkerHeader() Header {
	r.Hop++
	h := make(Header, 5)
	Put(h, HeaderNatsMsgID, r.NatsMsgID(r.Hop)+"/timer")
	r.putState(h, markerRows)
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
	rec := r.record()
	rec.put(h, HeaderNatsMsgID, r.ID)
	for _, row := range deliveryRows {
		row.put(h, cmp.Or(row.target, row.name), rec)
	}
	rec.release()
}

// DeadHeader returns the header of the message's dead letter.
func (r Request) DeadHeader(p *Problem) Header {
	h := r.userHeader(20)
	Put(h, HeaderNatsMsgID, r.DeadMsgID())
	Put(h, HeaderFormat, strconv.Itoa(Format))
	rec := r.record()
	for _, row := range letterRows {
		row.put(h, row.name, rec)
	}
	rec.release()
	Put(h, HeaderErrorCode, string(p.Code))
	Put(h, HeaderError, p.Sentence)
	return h
}

// readLetter parses the headers that DeadHeader writes for the fields of a request.
func (f *Fields) readLetter(r Request) Request {
	rec := &record{Request: r}
	for _, row := range letterRows {
		row.read(f, rec)
	}
	return rec.Request.WithOrigin(rec.Origin)
}

// claimedRequest returns the request of a message without a valid seal. The dead letter gets the time and the options
// in the state headers, for an operator who knows that a broker wrote the message. The dead letter does not get the id
// in these headers, which could be the id of another dead letter.
func (p Policy) claimedRequest(r Request, b Block) Request {
	if claim, f := p.ReadState(r, b, InLane); f.Problem == nil {
		r.Due, r.MsgID = claim.Due, claim.MsgID
		r = r.withOptions(claim, Options()...)
	}
	return r
}
