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
	scratch []byte   // for an encoding; it keeps its memory in the pool
	values  []string // the values of the headers that put has written
}

// put writes the field into a header with this name, unless the field is zero.
func (r *row) put(h Header, name string, rec *record) {
	switch v := r.field(rec).(type) {
	case *string:
		rec.put(h, name, *v)
	case *time.Time:
		rec.put(h, name, formatTime(*v))
	case *int:
		if *v > 0 {
			rec.put(h, name, strconv.Itoa(*v))
		}
	case *uint64:
		if *v > 0 {
			rec.put(h, name, strconv.FormatUint(*v, 10))
		}
	case *bool:
		if *v {
			rec.put(h, name, RollupSub)
		}
	}
}

// put writes a header, unless the value is empty. The headers of one record share an array of values.
func (rec *record) put(h Header, name, value string) {
	if value == "" {
		return
	}
	if rec.values == nil {
		rec.values = make([]string, 0, 4) // most messages have no more headers at their target
	}
	rec.values = append(rec.values, value)
	n := len(rec.values)
	h[name] = rec.values[n-1 : n : n]
}

// read parses the field in its header. It records the problem of a value that no broker writes.
func (r *row) read(from *Fields, rec *record) {
	switch v := r.field(rec).(type) {
	case *string:
		*v = from.Text(r.name)
	case *time.Time:
		*v = from.Moment(r.name, r.required)
	case *int:
		*v = from.count(r.name)
	case *uint64:
		*v = from.number(r.name, 64)
	case *bool:
		*v = strings.EqualFold(from.Text(r.name), RollupSub)
	}
	r.check(from, rec)
}

// check records the problem of a text that no broker writes, and of a required field that is missing.
func (r *row) check(from *Fields, rec *record) {
	switch v := r.field(rec).(type) {
	case *string:
		if r.valid != nil && !r.valid(*v) {
			from.Refuse(r.name, Excerpt(*v))
		}
	case *time.Time:
		if r.required && v.IsZero() {
			from.Refuse(r.name, "missing")
		}
	}
}

// pack appends the tag and the value of the field, unless it is zero.
func (r *row) pack(b []byte, rec *record) []byte {
	switch v := r.field(rec).(type) {
	case *string:
		if *v != "" {
			b = appendString(append(b, r.tag), *v)
		}
	case *time.Time:
		if !v.IsZero() {
			b = binary.AppendVarint(append(b, r.tag), v.Unix())
			b = binary.AppendUvarint(b, uint64(v.Nanosecond()))
		}
	case *int:
		if *v > 0 {
			b = binary.AppendUvarint(append(b, r.tag), uint64(*v))
		}
	case *uint64:
		if *v > 0 {
			b = binary.AppendUvarint(append(b, r.tag), *v)
		}
	case *bool:
		if *v {
			b = append(b, r.tag)
		}
	}
	return b
}

// unpack reads the value that pack has appended after the tag.
func (r *row) unpack(p *packed, rec *record) {
	switch v := r.field(rec).(type) {
	case *string:
		*v = p.string()
	case *time.Time:
		*v = p.time()
	case *int:
		*v = p.count()
	case *uint64:
		*v = p.uvarint()
	case *bool:
		*v = true
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
