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
	// ErrCursor is returned for text that is not a cursor.
	ErrCursor = errors.New("invalid cursor: pass the cursor that a list printed")
	// ErrBorder is returned for text that is not a border.
	ErrBorder = errors.New("want a duration (10m), or a time with a zone (2026-11-20T10:00:00Z)")
)

// Border is a limit of a list: a time, or a duration from now by the server's clock. The zero value means no limit.
type Border struct {
	At time.Time
	In *time.Duration
}

// ParseBorder parses a duration from now, or a time with a zone. Empty text is no border.
func ParseBorder(text string) (Border, error) {
	if text == "" {
		return Border{}, nil
	}
	if ahead, err := levels.ParseDuration(text); err == nil {
		return Border{In: &ahead}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Border{}, ErrBorder
	}
	return Border{At: at}, nil
}

// Time returns the border as a time. The zero time means no limit.
func (b Border) Time(now time.Time) time.Time {
	if b.In != nil {
		return now.Add(*b.In)
	}
	return b.At
}

// PendingLook is the query of a list.
type PendingLook struct {
	Target string // a pattern; empty for all
	Find   string // a Delay-Id, with or without its time, a timer's key, a Nats-Msg-Id or a target; empty for all
	After  Border // only messages due at this time or later
	Before Border // only messages due earlier
	Limit  int    // maximum number of messages to list
	Most   uint64 // maximum number of headers to read
	Cursor Cursor // end of an earlier list; the zero value for the beginning
}

// Waiting is a message that waits in a lane.
type Waiting struct {
	ID       string    `json:"id"`
	MsgID    string    `json:"msg_id,omitempty"` // the client's own Nats-Msg-Id
	Key      string    `json:"key,omitempty"`    // of a named timer
	Target   string    `json:"target,omitempty"`
	Due      time.Time `json:"due,omitzero"` // the next attempt of a refused message
	Accepted time.Time `json:"accepted"`
	Stream   string    `json:"stream"`
	Sequence uint64    `json:"sequence"`
	Bytes    int       `json:"bytes"`    // of the body
	Attempts int       `json:"attempts"` // deliveries refused so far
	Problem  string    `json:"problem,omitempty"`

	place time.Time // position in the list
}

// named reports whether the text identifies the message.
func (w Waiting) named(text string) bool {
	return text == "" || text == w.Key || text == w.MsgID || text == w.ID || strings.HasPrefix(w.ID, text+"-") ||
		message.Match(text, w.Target)
}

// List is a list of messages, by due time.
type List struct {
	Messages []Waiting
	End
}

// End describes the end of a list.
type End struct {
	Time   time.Time `json:"time"`             // by the server's clock
	More   bool      `json:"more"`             // there may be more
	Cursor string    `json:"cursor,omitempty"` // for the next list; empty for the beginning
	Read   uint64    `json:"read"`             // number of headers read
	Short  bool      `json:"short"`            // the list ended because Read reached the maximum
	Silent []string  `json:"silent,omitempty"` // streams that did not answer, or that this program cannot read
	Bare   bool      `json:"header_targets"`   // targets may be in a header, which a pattern cannot match
}

// A Cursor is a position in the order of due times. It stays valid when messages move to another lane.
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

// ParseCursor parses the result of String.
func ParseCursor(s string) (Cursor, error) {
	due, id, ok := strings.Cut(s, "/")
	n, err := strconv.ParseInt(due, 10, 64)
	if _, bad := message.ParseID(id); !ok || err != nil || bad != nil {
		return Cursor{}, fmt.Errorf("%w: %q", ErrCursor, text.Printable(s, 100))
	}
	return Cursor{Due: time.Unix(0, n).UTC(), ID: id}, nil
}

func (c Cursor) compare(w Waiting) int {
	return cmp.Or(c.Due.Compare(w.place), strings.Compare(c.ID, w.ID))
}

// Pending lists messages of all lanes by due time. Up to the last listed message the list is complete, except for
// messages that moved to another lane during the call.
func (i *Inspector) Pending(ctx context.Context, look PendingLook) (List, error) {
	v, err := i.Look(ctx, 0)
	if err != nil {
		return List{}, err
	}
	ctx, cancel := i.Allowed(ctx)
	defer cancel()
	m := merge{
		Inspector: i, look: look, after: look.After.Time(v.Time), before: look.Before.Time(v.Time),
		all: List{End: End{Time: v.Time}}, listed: make(map[string]bool),
		timers: make(map[string]string),
	}
	var lanes []Lane
	lanes, m.all.Silent, m.all.Bare = i.holding(v)
	m.reader = reader{i.reading(m.all.Bare), look.Target}
	for _, l := range lanes {
		m.add(ctx, l)
	}
	defer m.stop()
	if err := m.run(); err != nil {
		return List{}, Cause(ctx, err)
	}
	return m.all, nil
}

// holding returns the lanes that contain messages. Silent contains the lanes with unknown content. Bare reports whether
// targets may be in a header.
func (i *Inspector) holding(v Lanes) (lanes []Lane, silent []string, bare bool) {
	for _, l := range v.Lanes {
		switch {
		case l.Kind == streams.Dead, l.State == Missing, l.State == Foreign:
		case l.Info == nil, l.State == Newer, l.State == Broken:
			silent = append(silent, fmt.Sprintf("%s (%s)", l.Stream, l.State))
		default:
			bare = bare || slices.Contains(l.Info.Config.Subjects, i.names.Bare(l.Level))
			if l.Pending > 0 {
				lanes = append(lanes, l)
			}
		}
	}
	return lanes, silent, bare
}

// reading returns the policy that parses messages. If targets may be in headers, it allows all targets: an operator's
// shell seldom has the broker's list of allowed ones.
func (i *Inspector) reading(bare bool) message.Policy {
	p := i.Policy()
	if bare && len(p.HeaderTargets) == 0 {
		p.HeaderTargets = []string{">"}
	}
	return p
}
