package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/text"
	"delaybroker/levels"
)

var (
	// errCursor is returned for text that is not a cursor.
	errCursor = errors.New("invalid cursor: pass the cursor that a list printed")
	// errBound is returned for text that is not a bound.
	errBound = errors.New("want a duration (10m), or a time with a zone (2026-11-20T10:00:00Z)")
)

// Bound is a bound of a list: a time, or an offset from the server's time. The zero value means no bound.
type Bound struct {
	Instant time.Time
	Offset  *time.Duration
}

// IsZero reports whether there is no bound.
func (b Bound) IsZero() bool { return b.Offset == nil && b.Instant.IsZero() }

// ParseBound parses a duration from now, or a time with a zone. Empty text means no bound.
func ParseBound(text string) (Bound, error) {
	if text == "" {
		return Bound{}, nil
	}
	if d, err := levels.ParseDuration(text); err == nil {
		return Bound{Offset: &d}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Bound{}, errBound
	}
	return Bound{Instant: at}, nil
}

// Time returns the bound as a time. The zero time means no bound.
func (b Bound) Time(now time.Time) time.Time {
	if b.Offset != nil {
		return now.Add(*b.Offset)
	}
	return b.Instant
}

// PendingQuery selects the messages of a list.
type PendingQuery struct {
	Target  string // a pattern; empty for all
	Find    string // a Delay-Id or its first part, a timer's key, a Nats-Msg-Id or a pattern of targets; empty for all
	MinDue  Bound  // only messages due at this time or later
	MaxDue  Bound  // only messages due before this time
	Limit   int    // maximum number of messages to list
	MaxRead uint64 // maximum number of headers to read
	Cursor  Cursor // the end of an earlier list; the zero value means the first message
}

// PendingMessage is a message that waits in a lane.
type PendingMessage struct {
	ID       string    `json:"id"`
	MsgID    string    `json:"msg_id,omitempty"` // the client's own Nats-Msg-Id
	Key      string    `json:"key,omitempty"`    // key of a named timer
	Target   string    `json:"target,omitempty"`
	Due      time.Time `json:"due,omitzero"` // for a refused message, the time of the next attempt
	Accepted time.Time `json:"accepted"`
	Stream   string    `json:"stream"`
	Sequence uint64    `json:"sequence"`
	Bytes    int       `json:"bytes"`    // of the body
	Attempts int       `json:"attempts"` // deliveries refused so far
	Problem  string    `json:"problem,omitempty"`

	position time.Time // position in the list
}

// matches reports whether the text identifies the message, or is empty.
func (w PendingMessage) matches(text string) bool {
	return text == "" || text == w.Key || text == w.MsgID || text == w.ID || strings.HasPrefix(w.ID, text+"-") ||
		message.Match(text, w.Target)
}

// PendingList is a list of messages, by due time.
type PendingList struct {
	Messages []PendingMessage
	ListEnd
}

// ListEnd describes the end of a list.
type ListEnd struct {
	Time          time.Time `json:"time"`             // by the server's clock
	More          bool      `json:"more"`             // further messages may match
	Cursor        string    `json:"cursor,omitempty"` // for the next query, if More is true; empty means the first message
	Read          uint64    `json:"read"`             // number of headers read
	Truncated     bool      `json:"short"`            // the list ended because Read reached the maximum
	SilentStreams []string  `json:"silent,omitempty"` // streams that did not answer, or that this program cannot read
	// HeaderTargets is true if messages may have their target in a header. No pattern of targets finds these messages.
	HeaderTargets bool `json:"header_targets"`
}

// A Cursor is a position in the order of due times. A move of messages to another lane does not invalidate it.
type Cursor struct {
	Due time.Time
	ID  string
}

func (c Cursor) String() string {
	if c.ID == "" {
		return ""
	}
	return strconv.FormatInt(c.Due.UnixNano(), 10) + "/" + c.ID
}

// ParseCursor parses the result of [Cursor.String].
func ParseCursor(s string) (Cursor, error) {
	due, id, ok := strings.Cut(s, "/")
	n, err := strconv.ParseInt(due, 10, 64)
	if _, idErr := message.ParseID(id); !ok || err != nil || idErr != nil {
		return Cursor{}, fmt.Errorf("%w: %q", errCursor, text.Printable(s, 100))
	}
	return Cursor{Due: time.Unix(0, n).UTC(), ID: id}, nil
}

func (c Cursor) compare(w PendingMessage) int {
	return cmp.Or(c.Due.Compare(w.position), strings.Compare(c.ID, w.ID))
}

// Pending returns the matching messages of all lanes by due time. The list may lack messages that moved to another lane
// during the call.
func (i *Inspector) Pending(ctx context.Context, query PendingQuery) (PendingList, error) {
	v, err := i.Lanes(ctx, 0)
	if err != nil {
		return PendingList{}, err
	}
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	m := merge{
		Inspector: i, query: query, minDue: query.MinDue.Time(v.Time), maxDue: query.MaxDue.Time(v.Time),
		result: PendingList{ListEnd: ListEnd{Time: v.Time}}, listed: make(map[string]bool),
		timers: make(map[string]string),
	}
	var lanes []Lane
	lanes, m.result.SilentStreams, m.result.HeaderTargets = i.lanesToRead(v)
	m.parser = parser{i.parsePolicy(m.result.HeaderTargets), query.Target}
	for _, l := range lanes {
		m.add(ctx, l)
	}
	defer m.stop()
	if err := m.run(); err != nil {
		return PendingList{}, Cause(ctx, err)
	}
	return m.result, nil
}

// lanesToRead returns the lanes with messages. Silent has the lanes with unknown content. HeaderTargets reports whether
// targets may be in a header.
func (i *Inspector) lanesToRead(v Lanes) (lanes []Lane, silent []string, headerTargets bool) {
	for _, l := range v.Lanes {
		switch {
		case l.Kind == streams.Dead, l.State == Missing, l.State == Foreign:
		case l.Info == nil, l.State == Broken:
			silent = append(silent, fmt.Sprintf("%s (%s)", l.Stream, l.State))
		default:
			headerTargets = headerTargets || slices.Contains(l.Info.Config.Subjects, i.names.BareLevel(l.Level))
			if l.Pending > 0 {
				lanes = append(lanes, l)
			}
		}
	}
	return lanes, silent, headerTargets
}

// parsePolicy returns the policy that parses messages. If targets may be in headers, the policy allows all targets: an
// operator's shell seldom has the broker's list of allowed targets.
func (i *Inspector) parsePolicy(headerTargets bool) message.Policy {
	p := i.Policy()
	if headerTargets && len(p.HeaderTargets) == 0 {
		p.HeaderTargets = []string{">"}
	}
	return p
}
