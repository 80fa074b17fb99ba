package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

const (
	// DefaultLimit and MaxLimit are how many timers a page has.
	DefaultLimit = 100
	MaxLimit     = 500
	// maxBytes and maxScanned end a page early: an answer must fit into a message, and a page costs the server a pass
	// through the headers of all timers to a target.
	maxBytes   = 256 << 10
	maxScanned = 100_000
	rowBytes   = 256 // of a row without key and target
	rowsAtOnce = 64  // about which the leader is asked whether they were replaced
	// listSpare is the time to answer: with less left, a page ends early.
	listSpare = 500 * time.Millisecond
)

// Filter chooses timers.
type Filter struct {
	Targets []string // patterns, of the real targets of schedules too; none for all
	Under   string   // where targets of timers and subjects of schedules begin, and Targets; empty for all
	Key     string   // or the name of a schedule; * stands for any characters; empty for all
	DueFrom time.Time
	DueTo   time.Time     // not included
	State   timer.Outcome // Pending, Paused, Fired or Cancelled; empty for all

	Recurring bool   // only what recurs
	Set       string // only what this set of schedules made; empty for all
}

// Page is where a page begins, and how long it may be.
type Page struct {
	After uint64 // the sequence where the last page ended; zero for the first
	UpTo  uint64 // generations up to it only; zero for all that there are when the page is made
	Limit int    // of timers; zero is DefaultLimit
}

// Row is one timer of a page.
type Row struct {
	State      timer.Outcome `json:"state"`
	Key        string        `json:"key"`
	Target     string        `json:"target"` // empty for a schedule that is over
	Generation uint64        `json:"generation"`
	Due        time.Time     `json:"due,omitzero"`
	Became     entry.Outcome `json:"became,omitempty"`
	Size       int           `json:"size"` // of the body
	Why        string        `json:"why,omitempty"`
	Recurring  *Recurring    `json:"recurring,omitempty"` // nil for what fires once
	// Unopened says that the entry is sealed with a key that is not known here. Where the brokers do not know it either,
	// the timer does not fire.
	Unopened bool `json:"unopened,omitempty"`

	subject string      // of its entries
	state   timer.State // without the body
}

// Listing is a page of timers, in the order in which they were set.
type Listing struct {
	Timers  []Row     `json:"timers"`
	UpTo    uint64    `json:"up_to"`          // the last sequence when the first page was made: for later pages
	Next    uint64    `json:"next,omitempty"` // for the next page; zero on the last
	Scanned int       `json:"scanned"`        // entries that were looked at
	At      time.Time `json:"at"`
}

// errEnough ends a scan.
var errEnough = errors.New("the page is full")

// List makes one page. A timer that is set anew between two pages is on the later one, or on none if UpTo is given.
func (t *Timers) List(ctx context.Context, f Filter, p Page) (Listing, error) {
	if err := f.check(p); err != nil {
		return Listing{}, err
	}
	s, err := t.led(ctx, t.Policy.Names.TimersStream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Listing{}, noStream()
	}
	if err != nil {
		return Listing{}, fmt.Errorf("look at the stream of timers: %w", err)
	}
	all := Listing{Timers: []Row{}, UpTo: p.UpTo, At: time.Now().UTC()}
	if all.UpTo == 0 {
		all.UpTo = s.LastSeq
	}
	if all.UpTo <= p.After || s.LastSeq <= p.After {
		return all, nil
	}
	err = t.fill(ctx, &all, f, p)
	if err == nil || errors.Is(err, errEnough) {
		err = t.dropReplaced(ctx, &all, f)
	}
	if err != nil {
		return Listing{}, fmt.Errorf("read the stream of timers: %w", err)
	}
	return all, nil
}

func (f Filter) check(p Page) error {
	for _, target := range f.Targets {
		if !message.ValidPattern(target) {
			return Refusef(CodeBad, "target %q: tokens separated by dots; * for one token, > for the rest", target)
		}
	}
	if !slices.Contains([]timer.Outcome{"", timer.Pending, timer.Paused, timer.Fired, timer.Cancelled}, f.State) {
		return Refusef(CodeBad, "state %q: want pending, paused, fired or cancelled", f.State)
	}
	if p.Limit < 0 || p.Limit > MaxLimit {
		return Refusef(CodeBad, "limit %d: want 1 to %d", p.Limit, MaxLimit)
	}
	return nil
}

// fill scans until the page is full.
func (t *Timers) fill(ctx context.Context, all *Listing, f Filter, p Page) error {
	limit, bytes, last := p.Limit, 0, p.After
	if limit == 0 {
		limit = DefaultLimit
	}
	for s, err := range t.entries(ctx, f, p.After+1, all.UpTo) {
		if err != nil {
			return err
		}
		row := t.rowOf(s.Incoming(t.Policy.Names.TimersStream()), s.BodySize())
		if len(all.Timers) >= limit || bytes >= maxBytes || all.Scanned >= maxScanned || all.Scanned > 0 && late(ctx) {
			all.Next = last
			return errEnough
		}
		all.Scanned++
		last = s.Sequence
		if noise := strings.ContainsAny(s.Subject, "*> "); !noise && f.takes(row) {
			all.Timers = append(all.Timers, row)
			bytes += row.bytes()
		}
	}
	return nil
}

// bytes is about how many bytes the row takes in an answer.
func (r Row) bytes() int { return rowBytes + 2*len(r.Key) + 2*len(r.Target) + len(r.Why) }

// Recurs goes through all that recurs, page by page, and gives each timer once. A series whose round fires meanwhile
// has a new entry, behind all pages: what is there then is gone through, too, until it is one page.
func (t *Timers) Recurs(ctx context.Context, f Filter) iter.Seq2[Row, error] {
	f.Recurring = true
	return func(yield func(Row, error) bool) {
		given := make(map[string]bool) // by subject
		p, pages := Page{Limit: MaxLimit}, 1
		for {
			l, err := t.List(ctx, f, p)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range l.Timers {
				if !given[r.subject] && !yield(r, nil) {
					return
				}
				given[r.subject] = true
			}
			switch {
			case l.Next > 0:
				p.After, p.UpTo = l.Next, l.UpTo
				pages++
			case pages > 1:
				p, pages = Page{Limit: MaxLimit, After: l.UpTo}, 1
			default:
				return
			}
		}
	}
}

// dropReplaced leaves out the rows of entries that have another behind them on their subject: what was replaced stays
// until a broker removes it. A series whose next round was stored since the page began is no less there: in a list of
// what recurs, that round takes its place.
func (t *Timers) dropReplaced(ctx context.Context, all *Listing, f Filter) error {
	kept := make([]*Row, len(all.Timers))
	errs := make([]error, len(all.Timers))
	room := make(chan struct{}, rowsAtOnce)
	var asking sync.WaitGroup
	for i, r := range all.Timers {
		room <- struct{}{}
		asking.Go(func() {
			kept[i], errs[i] = t.standing(ctx, r, all.UpTo, f)
			<-room
		})
	}
	asking.Wait()
	all.Timers = []Row{}
	for _, r := range kept {
		if r != nil {
			all.Timers = append(all.Timers, *r)
		}
	}
	return errors.Join(errs...)
}

// standing is the row if nothing is behind its entry, or the one that takes its place, or nil. The server answers that
// nothing is behind from an index, and sends no body.
func (t *Timers) standing(ctx context.Context, r Row, upTo uint64, f Filter) (*Row, error) {
	switch _, replaced, err := t.Entries().Next(ctx, r.subject, r.state.Sequence+1); {
	case err != nil:
		return nil, err
	case !replaced:
		return &r, nil
	case !f.Recurring:
		return nil, nil
	}
	m, err := t.API.Last(ctx, t.Policy.Names.TimersStream(), r.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	now := t.rowOf(m.Incoming(t.Policy.Names.TimersStream()), len(m.Data))
	if now.state.Sequence <= upTo || !f.takes(now) {
		return nil, nil
	}
	return &now, nil
}

// late reports whether the asker is about to time out.
func late(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < listSpare
}

// rowOf is what an entry says by its header.
func (t *Timers) rowOf(in message.Incoming, size int) Row {
	in.Data, in.BodyLeft = nil, true
	addr := t.Policy.Names.Parse(in.Subject)
	target := addr.Target
	state := timer.State{Sequence: in.Sequence, At: in.At, LastSeq: in.Sequence, Entry: entry.Parse(t.Policy, in), In: in}
	if addr.Schedule() {
		target = state.Entry.Request.Target
	}
	_, answer := timer.Decide(timer.Request{Verb: timer.Get}, state, timer.Doubt{})
	unopened := entry.ClaimsOurs(t.Policy, in) && t.Policy.Keys.UseOfMessage(in.Header) == message.OtherKey
	if unopened {
		answer.Why = "it is sealed with a secret that is not known here (DELAY_SECRET)"
	}
	return Row{
		State: answer.Outcome, Key: addr.Key(), Target: target, Generation: answer.Generation, Due: answer.Due,
		Became: answer.Became, Size: size, Why: answer.Why, Recurring: RecurringOf(state.Entry),
		Unopened: unopened, subject: in.Subject, state: state,
	}
}

func (f Filter) takes(r Row) bool {
	return (f.State == "" || f.State == r.State) &&
		(f.Key == "" || matchKey(f.Key, r.Key)) &&
		(len(f.Targets) == 0 || slices.ContainsFunc(f.Targets, func(p string) bool { return message.Match(p, r.Target) })) &&
		(!f.Recurring || r.Recurring != nil) &&
		(f.Set == "" || r.Recurring != nil && r.Recurring.Set == f.Set) &&
		(f.DueFrom.IsZero() || !r.Due.Before(f.DueFrom)) &&
		(f.DueTo.IsZero() || !r.Due.IsZero() && r.Due.Before(f.DueTo))
}
