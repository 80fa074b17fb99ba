package message

import (
	"encoding/binary"
	"math"
	"sync"
	"time"
)

// An encoded request is a list of fields, each the tag of its row in the table and the value. The tags rise, and a zero
// ends the list. Fields with the value zero are missing.

// records has records for packing and unpacking. The rows' functions would otherwise move each request to the heap.
var records = sync.Pool{New: func() any { return new(record) }}

// record returns the record of a request, until the caller releases it.
func (r *Request) record() *record {
	rec := records.Get().(*record)
	rec.Request = *r
	if r.origin != nil {
		rec.Origin = *r.origin
	}
	return rec
}

func (rec *record) release() {
	*rec = record{scratch: rec.scratch[:0]}
	records.Put(rec)
}

// readFields reads the fields of a request. It returns false if the encoding is invalid.
func (p *packed) readFields(rec *record) bool {
	last := byte(0)
	for len(p.rest) > 0 && !p.bad {
		tag := p.rest[0]
		p.rest = p.rest[1:]
		if tag == 0 {
			return true
		}
		row := rowsByTag[tag]
		if row == nil || tag <= last {
			return false
		}
		last = tag
		row.unpack(p, rec)
	}
	return false
}

// Pack appends the encoded request to a byte slice, with the client's headers. A lane keeps a waiting message in this
// form, because a Request takes half a kilobyte, and each header of the client a hundred bytes more.
func (r Request) Pack(b []byte) []byte {
	rec := r.record()
	for _, row := range fieldRows {
		b = row.pack(b, rec)
	}
	rec.release()
	b = append(b, 0)
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
	rec := records.Get().(*record)
	p := packed{rest: encoded}
	if !p.readFields(rec) {
		panic("bug: a packed request cannot be read")
	}
	r := rec.Request.WithOrigin(rec.Origin)
	rec.release()
	for len(p.rest) > 0 {
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

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// packed is the unread rest of an encoding. After a value that cannot be read, bad is true, and all further values are
// zero.
type packed struct {
	rest string
	bad  bool
}

func (p *packed) uvarint() uint64 {
	var n uint64
	for i := 0; i < len(p.rest) && i < binary.MaxVarintLen64; i++ {
		c := p.rest[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			p.rest = p.rest[i+1:]
			return n
		}
	}
	p.bad, p.rest = true, ""
	return 0
}

func (p *packed) varint() int64 {
	n := p.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (p *packed) count() int {
	n := p.uvarint()
	if n > math.MaxInt {
		p.bad = true
		return 0
	}
	return int(n)
}

func (p *packed) string() string {
	n := p.uvarint()
	if n > uint64(len(p.rest)) {
		p.bad, p.rest = true, ""
		return ""
	}
	s := p.rest[:n]
	p.rest = p.rest[n:]
	return s
}

func (p *packed) time() time.Time {
	sec, nsec := p.varint(), p.uvarint()
	t := time.Unix(sec, int64(nsec)).UTC()
	if nsec >= uint64(time.Second) || !writable(t) {
		p.bad = true
		return time.Time{}
	}
	return t
}
