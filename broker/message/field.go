package message

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// record is a request with its origin, whose fields the rows of the table name.
type record struct {
	Request
	Origin
	scratch []byte // for an encoding; it keeps its memory in the pool
}

// field is a field of a record. Exactly one of the functions that return a pointer is set.
type field struct {
	text   func(*record) *string
	moment func(*record) *time.Time
	count  func(*record) *int
	number func(*record) *uint64
	flag   func(*record) *bool

	required bool                // every record has the field
	valid    func(v string) bool // whether a broker writes this text; nil if every text is valid
}

// put writes the field into a header, unless it is zero.
func (f *field) put(h Header, name string, r *record) {
	switch {
	case f.text != nil:
		Put(h, name, *f.text(r))
	case f.moment != nil:
		PutTime(h, name, *f.moment(r))
	case f.count != nil:
		putCount(h, name, *f.count(r))
	case f.number != nil && *f.number(r) > 0:
		Put(h, name, strconv.FormatUint(*f.number(r), 10))
	case f.flag != nil && *f.flag(r):
		Put(h, name, RollupSub)
	}
}

// read parses the field in a header. It records the problem of a value that no broker writes.
func (f *field) read(from *Fields, name string, r *record) {
	switch {
	case f.text != nil:
		*f.text(r) = from.Text(name)
	case f.moment != nil:
		*f.moment(r) = from.Moment(name, f.required)
	case f.count != nil:
		*f.count(r) = from.count(name, f.required)
	case f.number != nil:
		*f.number(r) = from.sequence(name)
	case f.flag != nil:
		*f.flag(r) = strings.EqualFold(from.Text(name), RollupSub)
	}
	f.check(from, name, r)
}

// check records the problem of a text that no broker writes, and of a required field that is missing.
func (f *field) check(from *Fields, name string, r *record) {
	switch {
	case f.text != nil && f.valid != nil && !f.valid(*f.text(r)):
		from.Refuse(name, Excerpt(*f.text(r)))
	case f.required && f.moment != nil && f.moment(r).IsZero():
		from.Refuse(name, "missing")
	}
}

// copy copies the field.
func (f *field) copy(to, from *record) {
	switch {
	case f.text != nil:
		*f.text(to) = *f.text(from)
	case f.moment != nil:
		*f.moment(to) = *f.moment(from)
	case f.count != nil:
		*f.count(to) = *f.count(from)
	case f.number != nil:
		*f.number(to) = *f.number(from)
	case f.flag != nil:
		*f.flag(to) = *f.flag(from)
	}
}

// pack appends the tag and the value of the field, unless it is zero.
func (f *field) pack(b []byte, tag byte, r *record) []byte {
	switch {
	case f.text != nil:
		if s := *f.text(r); s != "" {
			b = appendString(append(b, tag), s)
		}
	case f.moment != nil:
		if t := f.moment(r); !t.IsZero() {
			b = binary.AppendVarint(append(b, tag), t.Unix())
			b = binary.AppendUvarint(b, uint64(t.Nanosecond()))
		}
	case f.count != nil:
		if n := *f.count(r); n > 0 {
			b = binary.AppendUvarint(append(b, tag), uint64(n))
		}
	case f.number != nil:
		if n := *f.number(r); n > 0 {
			b = binary.AppendUvarint(append(b, tag), n)
		}
	case f.flag != nil && *f.flag(r):
		b = append(b, tag)
	}
	return b
}

// unpack reads the value that pack has appended after the tag.
func (f *field) unpack(p *packed, r *record) {
	switch {
	case f.text != nil:
		*f.text(r) = p.string()
	case f.moment != nil:
		*f.moment(r) = p.time()
	case f.count != nil:
		*f.count(r) = p.count()
	case f.number != nil:
		*f.number(r) = p.uvarint()
	case f.flag != nil:
		*f.flag(r) = true
	}
}

const maxToken = 32 // bytes of a short text in a state

func validToken(v string) bool { return len(v) <= maxToken }

func validReason(v string) bool { return Reason(v) == v }

func validSubject(v string) bool { return truncateEscaped(v) == v }

func validID(v string) bool {
	_, err := ParseID(v)
	return err == nil
}
