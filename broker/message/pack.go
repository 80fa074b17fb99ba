package message

import (
	"encoding/binary"
	"time"
)

// Pack appends the encoded request to a byte slice. A lane keeps a waiting message in this form, because a Request
// takes half a kilobyte, and each header of the client a hundred bytes more. The encoding has no version, so only the
// process that packed a request may unpack it. For a request with an origin, Pack returns false and appends nothing.
func (r Request) Pack(b []byte) ([]byte, bool) {
	if r.origin != nil {
		return b, false
	}
	for _, s := range r.strings() {
		b = appendString(b, *s)
	}
	for _, t := range r.times() {
		b = appendTime(b, *t)
	}
	for _, n := range r.counts() {
		b = binary.AppendVarint(b, int64(*n))
	}
	for name, values := range r.User {
		b = appendString(b, name)
		b = binary.AppendUvarint(b, uint64(len(values)))
		for _, v := range values {
			b = appendString(b, v)
		}
	}
	return b, true
}

// Unpack returns a request that Pack packed. The request keeps encoded in memory, because the strings of the request
// are parts of it.
func Unpack(encoded string) Request {
	var r Request
	p := packed(encoded)
	for _, s := range r.strings() {
		*s = p.string()
	}
	for _, t := range r.times() {
		*t = p.time()
	}
	for _, n := range r.counts() {
		*n = int(p.varint())
	}
	for len(p) > 0 {
		name := p.string()
		values := make([]string, p.uvarint())
		for i := range values {
			values[i] = p.string()
		}
		if r.User == nil {
			r.User = make(Header)
		}
		r.User[name] = values
	}
	return r
}

// The packed fields, by their kinds.

func (r *Request) strings() [11]*string {
	return [...]*string{
		&r.ID, &r.Subject, &r.Target, (*string)(&r.Mode), &r.TTL, &r.MsgID, &r.Reservation,
		&r.ResumedPause, &r.LastError, &r.DeferralReason, &r.RateKey,
	}
}

func (r *Request) times() [6]*time.Time {
	return [...]*time.Time{&r.Accepted, &r.Due, &r.Expires, &r.FirstFailure, &r.LastFailure, &r.RetryAt}
}

func (r *Request) counts() [4]*int {
	return [...]*int{&r.MaxAttempts, &r.Hop, &r.Attempts, &r.AllowedRefusals}
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTime encodes the seconds, and the nanoseconds plus one. Two zeros encode the zero time.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0, 0)
	}
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond())+1)
}

// packed is the unread rest of a packed request.
type packed string

func (p *packed) uvarint() uint64 {
	var n uint64
	for i := 0; ; i++ {
		c := (*p)[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			*p = (*p)[i+1:]
			return n
		}
	}
}

func (p *packed) varint() int64 {
	n := p.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (p *packed) string() string {
	n := p.uvarint()
	s := string((*p)[:n])
	*p = (*p)[n:]
	return s
}

func (p *packed) time() time.Time {
	sec, nsec := p.varint(), p.uvarint()
	if nsec == 0 {
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)-1).UTC()
}
