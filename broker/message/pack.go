package message

import (
	"encoding/binary"
	"time"
)

// Pack appends the encoded request to a byte slice. A lane keeps a waiting message in this form, because a Request
// takes half a kilobyte, and each header of the client a hundred bytes more. The encoding has no version, so only the
// process that packed a request may unpack it.
func (r Request) Pack(b []byte) []byte {
	for _, s := range r.strings() {
		b = appendString(b, *s)
	}
	for _, t := range r.times() {
		b = appendTime(b, *t)
	}
	for _, n := range r.counts() {
		b = binary.AppendVarint(b, int64(*n))
	}
	b = r.Origin().pack(b)
	for name, values := range r.User {
		b = appendString(b, name)
		b = binary.AppendUvarint(b, uint64(len(values)))
		for _, v := range values {
			b = appendString(b, v)
		}
	}
	return b
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
	r = r.WithOrigin(p.origin())
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

// pack appends the origin. The first value is zero for a message without an origin, and otherwise one.
func (o Origin) pack(b []byte) []byte {
	if o == (Origin{}) {
		return append(b, 0)
	}
	b = binary.AppendUvarint(append(b, 1), o.Series)
	b = binary.AppendVarint(b, int64(o.Round))
	b = appendString(appendString(b, o.Scheduler), o.ScheduleNext)
	if o.Rollup {
		return append(b, 1)
	}
	return append(b, 0)
}

func (p *packed) origin() (o Origin) {
	if p.uvarint() == 0 {
		return o
	}
	o.Series, o.Round = p.uvarint(), int(p.varint())
	o.Scheduler, o.ScheduleNext = p.string(), p.string()
	o.Rollup = p.uvarint() == 1
	return o
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
