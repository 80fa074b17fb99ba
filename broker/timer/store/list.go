package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
)

const (
	defaultLimit = 100 // the default of Page.Limit
	MaxLimit     = 500 // the maximum of Page.Limit
	// A page ends early when its rows have maxBytes, because the answer must fit into a message, or when maxScanned
	// entries were read, to bound the work of the server.
	maxBytes   = 256 << 10
	maxScanned = 100_000
	rowBytes   = 256 // the approximate size of a row in the answer, without its texts, in bytes
	rowsAtOnce = 64  // the maximum number of rows for which later entries are searched concurrently
	// listReserve is reserved for the answer: when less time is left until the deadline, a page ends early.
	listReserve = 500 * time.Millisecond
)

// Filter selects timers.
type Filter struct {
	Targets []string // patterns of targets, also of schedules' targets; empty for all
	Prefix  string   // first tokens of timers' targets and schedules' subjects; empty for all
	Key     string   // pattern of keys or schedule names; * for any characters; empty for all
	DueFrom time.Time
	DueTo   time.Time     // exclusive
	State   timer.Outcome // Pending, Paused, Fired or Cancelled; empty for all

	Recurring bool   // only timers that recur
	OneShot   bool   // only timers that fire once
	Set       string // only timers with this Delay-Owner; empty for all
}

// Page has the bounds of a page.
type Page struct {
	Start uint64 // the page begins above it: Listing.Next of the previous page; zero for none
	UpTo  uint64 // the maximum sequence of an entry; zero for the end of the stream
	Limit int    // the maximum number of timers; zero is defaultLimit
	ByDue bool   // only pending timers, the next due first; Start is the generation of the one at Filter.DueFrom
}

// Row is one timer of a page.
type Row struct {
	State      timer.Outcome     `json:"state"`
	Key        string            `json:"key"`
	Target     string            `json:"target"` // empty for a schedule that has ended
	Generation uint64            `json:"generation"`
	Due        time.Time         `json:"due,omitzero"`
	Delivery   entry.Outcome     `json:"became,omitempty"` // the outcome of a fired timer; empty until it is recorded
	Size       int               `json:"size"`             // of the body, in bytes
	Why        string            `json:"why,omitempty"`
	Recurring  *change.Recurring `json:"recurring,omitempty"` // nil for a timer that fires once
	// Unopened means that this process lacks the key of the entry's seal. If the brokers lack it, too, the timer does not
	// fire.
	Unopened bool `json:"unopened,omitempty"`

	subject string      // the subject of the timer's entries
	state   timer.State // without the body
}

// Listing is a page of timers.
type Listing struct {
	Timers  []Row     `json:"timers"`
	UpTo    uint64    `json:"up_to"`             // Page.UpTo; by default, the last sequence of the stream
	Next    uint64    `json:"next,omitempty"`    // Page.Start of the next page; zero on the last page
	NextDue time.Time `json:"next_due,omitzero"` // Filter.DueFrom of the next page of a list by due time
	Scanned int       `json:"scanned"`           // the number of entries that were read
	Partial bool      `json:"partial,omitempty"` // a list by due time, without all entries
	At      time.Time `json:"at"`
}

// List returns one page. If a timer is set again between two pages, a later page has the timer, unless its new entry is
// above UpTo.
func (t *Timers) List(ctx context.Context, f Filter, p Page) (Listing, error) {
	if err := f.check(p); err != nil {
		return Listing{}, err
	}
	if p.ByDue {
		return t.listByDue(ctx, f, p)
	}
	end, err := t.Entries().End(ctx, "")
	if err != nil {
		return Listing{}, endError(err)
	}
	listing := Listing{Timers: []Row{}, UpTo: cmp.Or(p.UpTo, end.LastSeq), At: time.Now().UTC()}
	if listing.UpTo <= p.Start || end.LastSeq <= p.Start {
		return listing, nil
	}
	err = t.fill(ctx, &listing, f, p)
	if err == nil {
		err = t.dropReplaced(ctx, &listing, f)
	}
	if err != nil {
		return Listing{}, fmt.Errorf("read the stream of timers: %w", err)
	}
	return listing, nil
}

// endError explains a failed request for the end of the stream.
func endError(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return change.NoStream()
	}
	return fmt.Errorf("read the state of the stream of timers: %w", err)
}

func (f Filter) check(p Page) error {
	for _, target := range f.Targets {
		if !message.ValidPattern(target) {
			return change.Refusef(
				change.CodeBadRequest,
				"target %q: want tokens separated by dots; * for one token, > for the rest",
				target,
			)
		}
	}
	if !slices.Contains([]timer.Outcome{"", timer.Pending, timer.Paused, timer.Fired, timer.Cancelled}, f.State) {
		return change.Refusef(change.CodeBadRequest, "state %q: want pending, paused, fired or cancelled", f.State)
	}
	if p.Limit < 0 || p.Limit > MaxLimit {
		return change.Refusef(change.CodeBadRequest, "limit %d: want 1 to %d", p.Limit, MaxLimit)
	}
	return nil
}

// fill adds rows to the page. If the page is full before the last entry, fill sets Listing.Next.
func (t *Timers) fill(ctx context.Context, listing *Listing, f Filter, p Page) error {
	limit, bytes, last := cmp.Or(p.Limit, defaultLimit), 0, p.Start
	for s, err := range t.entries(ctx, f, p.Start+1, listing.UpTo) {
		if err != nil {
			return err
		}
		row := t.rowOf(s.Incoming(t.Policy.Names.TimersStream()), s.BodySize())
		if len(listing.Timers) >= limit || bytes >= maxBytes || listing.Scanned >= maxScanned ||
			listing.Scanned > 0 && nearDeadline(ctx, listReserve) {
			listing.Next = last
			return nil
		}
		listing.Scanned++
		last = s.Sequence
		if valid := !strings.ContainsAny(s.Subject, "*> "); valid && f.matches(row) {
			listing.Timers = append(listing.Timers, row)
			bytes += rowBytes + 2*len(row.Key) + 2*len(row.Target) + len(row.Why)
		}
	}
	return nil
}

// ListRecurring lists all recurring timers, page by page, and yields each timer once. A series whose round fires during
// the listing has a new entry above Listing.UpTo. So ListRecurring lists the entries above UpTo, too, and repeats this
// until they fit on one page.
func (t *Timers) ListRecurring(ctx context.Context, f Filter) iter.Seq2[Row, error] {
	f.Recurring = true
	return func(yield func(Row, error) bool) {
		yielded := make(map[string]bool) // by subject
		p, pages := Page{Limit: MaxLimit}, 1
		for {
			l, err := t.List(ctx, f, p)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range l.Timers {
				if !yielded[r.subject] && !yield(r, nil) {
					return
				}
				yielded[r.subject] = true
			}
			switch {
			case l.Next > 0:
				p.Start, p.UpTo = l.Next, l.UpTo
				pages++
			case pages > 1:
				p, pages = Page{Limit: MaxLimit, Start: l.UpTo}, 1
			default:
				return
			}
		}
	}
}

// readRows calls read for the numbers below n, several at a time. It returns the rows that are not nil, in order.
func readRows(n int, read func(i int) (*Row, error)) ([]Row, error) {
	found := make([]*Row, n)
	var reading errgroup.Group
	reading.SetLimit(rowsAtOnce)
	for i := range n {
		reading.Go(func() (err error) {
			found[i], err = read(i)
			return err
		})
	}
	err := reading.Wait()
	rows := []Row{}
	for _, r := range found {
		if r != nil {
			rows = append(rows, *r)
		}
	}
	return rows, err
}

// dropReplaced replaces each row by the result of currentRow, and removes the rows for which currentRow returns nil.
func (t *Timers) dropReplaced(ctx context.Context, listing *Listing, f Filter) (err error) {
	all := listing.Timers
	listing.Timers, err = readRows(len(all), func(i int) (*Row, error) {
		return t.currentRow(ctx, all[i], listing.UpTo, f)
	})
	return err
}

// currentRow returns the row if its entry is still the last one of its subject; replaced entries stay in the stream
// until a broker removes them. With f.Recurring, currentRow returns the row of the last entry, if that entry is above
// upTo and matches the filter. For any other replaced entry, currentRow returns nil. Without a later entry,
// Entries.Next is cheap: the server answers from an index, and sends no body.
func (t *Timers) currentRow(ctx context.Context, r Row, upTo uint64, f Filter) (*Row, error) {
	switch _, replaced, err := t.Entries().Next(ctx, r.subject, r.state.Sequence+1); {
	case err != nil:
		return nil, err
	case !replaced:
		return &r, nil
	case !f.Recurring:
		return nil, nil
	}
	in, err := t.Entries().Last(ctx, r.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	last := t.rowOf(in, len(in.Data))
	if last.state.Sequence <= upTo || !f.matches(last) {
		return nil, nil
	}
	return &last, nil
}

// nearDeadline reports whether less than the reserve is left until the deadline of ctx.
func nearDeadline(ctx context.Context, reserve time.Duration) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < reserve
}

// rowOf returns the row for an entry. It does not read the body.
func (t *Timers) rowOf(in message.Incoming, size int) Row {
	in.Data, in.HeadersOnly = nil, true
	addr := t.Policy.Names.Parse(in.Subject)
	target := addr.Target
	state := t.Entries().State(in)
	if addr.IsSchedule() {
		target = state.Entry.Request.Target
	}
	_, answer := timer.Decide(timer.Call{Verb: timer.Get}, state, timer.Doubt{})
	unopened := entry.ClaimsBroker(t.Policy, in) && t.Policy.Keys.UseOfMessage(in.Header) == message.OtherKey
	if unopened {
		answer.Why = "the entry is sealed with a secret that is not known here (DELAY_SECRET)"
	}
	return Row{
		State: answer.Outcome, Key: addr.Key(), Target: target, Generation: answer.Generation, Due: answer.Due,
		Delivery: answer.Delivery, Size: size, Why: answer.Why, Recurring: change.RecurringOf(state.Entry),
		Unopened: unopened, subject: in.Subject, state: state,
	}
}

func (f Filter) matches(r Row) bool {
	return (f.State == "" || f.State == r.State) &&
		(f.Key == "" || matchKey(f.Key, r.Key)) &&
		(len(f.Targets) == 0 || slices.ContainsFunc(f.Targets, func(p string) bool { return message.Match(p, r.Target) })) &&
		(!f.Recurring || r.Recurring != nil) &&
		(!f.OneShot || r.Recurring == nil) &&
		(f.Set == "" || r.Recurring != nil && r.Recurring.Set == f.Set) &&
		(f.DueFrom.IsZero() || !r.Due.Before(f.DueFrom)) &&
		(f.DueTo.IsZero() || !r.Due.IsZero() && r.Due.Before(f.DueTo))
}
