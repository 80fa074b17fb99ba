package message

import (
	"strconv"
	"time"
)

// Arguments of Moment.
const (
	Required = true
	Optional = false
)

// Fields parses state headers. Problem is the first problem of the headers.
type Fields struct {
	Block
	Problem *Problem
}

// Text returns the value of a header, or "" if it is missing.
func (f *Fields) Text(name string) string {
	v, problem := f.Value(name)
	if problem != nil {
		f.Refuse(name, problem.Sentence)
	}
	return v
}

// Moment parses a time. It returns the zero time if the header is missing and not required.
func (f *Fields) Moment(name string, required bool) time.Time {
	v := f.Text(name)
	if v == "" && !required {
		return time.Time{}
	}
	t, problem := ParseTime(v)
	if problem != nil {
		f.Refuse(name, Excerpt(v))
	}
	return t
}

// count parses a number of at least one. It returns zero if the header is missing.
func (f *Fields) count(name string) int { return int(f.number(name, strconv.IntSize-1)) }

// number parses a number of at least one, with at most the given number of bits. It returns zero if the header is
// missing.
func (f *Fields) number(name string, bits int) uint64 {
	v := f.Text(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, bits)
	if err != nil || n < 1 {
		f.Refuse(name, Excerpt(v))
	}
	return n
}

// Refuse records the problem of a header, unless f already has a problem.
func (f *Fields) Refuse(name, reason string) {
	if f.Problem == nil {
		f.Problem = Problemf(BadInternal, "%s: %s, which no broker writes; %s", name, reason, onlyBrokers)
	}
}

// Put writes a header, unless the value is empty.
func Put(h Header, key, value string) {
	if value != "" {
		h[key] = []string{value}
	}
}

// PutTime writes a time, unless it is the zero time.
func PutTime(h Header, key string, t time.Time) { Put(h, key, formatTime(t)) }

// formatTime formats a time for a header. It returns "" for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
