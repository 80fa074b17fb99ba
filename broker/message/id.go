package message

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID identifies an accepted message for its whole life. It consists of the stream that stored the message first, the
// sequence in that stream, and the timestamp. The timestamp distinguishes the message from messages in an earlier
// stream with the same name. String formats an ID as in "DELAY_30m-1234-1732060800000000000", with the timestamp in
// nanoseconds since 1970. The result has no dot, so it can be a subject token.
type ID struct {
	Stream   string
	Sequence uint64
	At       time.Time
}

func (id ID) String() string {
	var buffer [96]byte // on the stack; a longer name of a stream allocates
	return string(id.append(buffer[:0]))
}

func (id ID) append(b []byte) []byte {
	b = append(b, id.Stream...)
	b = append(b, '-')
	b = strconv.AppendUint(b, id.Sequence, 10)
	b = append(b, '-')
	return strconv.AppendInt(b, id.At.UnixNano(), 10)
}

// ParseID parses the result of String.
func ParseID(s string) (ID, error) {
	invalid := func() (ID, error) {
		return ID{}, fmt.Errorf("delay id %s: want <stream>-<sequence>-<nanoseconds>", Excerpt(s))
	}
	rest, nanos, ok := cutLast(s)
	stream, seq, ok2 := cutLast(rest)
	if !ok || !ok2 || stream == "" || strings.ContainsAny(stream, ".*> \t\r\n") {
		return invalid()
	}
	n, err := strconv.ParseUint(seq, 10, 64)
	at, err2 := strconv.ParseInt(nanos, 10, 64)
	if err != nil || err2 != nil || at < 0 {
		return invalid()
	}
	id := ID{Stream: stream, Sequence: n, At: time.Unix(0, at).UTC()}
	var buffer [128]byte // large enough for most ids, which saves an allocation
	if string(id.append(buffer[:0])) != s {
		return invalid()
	}
	return id, nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
