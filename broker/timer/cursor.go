package timer

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cursor is the position up to which the timers' stream has been read: everything below Next is armed, or over. It is
// stored in the stream itself, so that it is lost only with the stream.
type Cursor struct {
	Next    uint64
	Created time.Time // when the stream was created
}

// String returns the body of the cursor's entry.
func (c Cursor) String() string { return fmt.Sprintf("armed %d %d", c.Next, c.Created.UnixNano()) }

// ParseCursor parses the result of String, and nothing else. A cursor cannot name a sequence above its own.
func ParseCursor(body []byte, own uint64) (Cursor, bool) {
	words := strings.Split(string(body[:min(len(body), 64)]), " ")
	if len(words) != 3 {
		return Cursor{}, false
	}
	next, err := strconv.ParseUint(words[1], 10, 64)
	created, err2 := strconv.ParseInt(words[2], 10, 64)
	if err != nil || err2 != nil {
		return Cursor{}, false
	}
	c := Cursor{Next: next, Created: time.Unix(0, created).UTC()}
	return c, c.String() == string(body) && next > 0 && next <= own
}
