package timer

import (
	"fmt"
	"time"
)

// Cursor is the position up to which the timers' stream has been read: each timer whose set is below Next has a marker,
// or has ended. The cursor is stored in the stream itself, so that it is lost only with the stream.
type Cursor struct {
	Next    uint64    // the first sequence that has not been read
	Created time.Time // when the stream was created
}

// String returns the body of the cursor's entry.
func (c Cursor) String() string { return fmt.Sprintf("armed %d %d", c.Next, c.Created.UnixNano()) }

// ParseCursor parses the result of String, and accepts no other form. Own is the sequence of the cursor's entry: a
// cursor with a higher Next is invalid.
func ParseCursor(body []byte, own uint64) (Cursor, bool) {
	var next uint64
	var created int64
	_, err := fmt.Sscanf(string(body[:min(len(body), 64)]), "armed %d %d", &next, &created)
	c := Cursor{Next: next, Created: time.Unix(0, created).UTC()}
	return c, err == nil && c.String() == string(body) && next > 0 && next <= own
}
