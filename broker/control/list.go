package control

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

const (
	// DefaultLimit and MostLimit are how many timers a page has.
	DefaultLimit = 100
	MostLimit    = 500
	// mostBytes and mostScanned end a page early: an answer must fit into a message, and a page costs the server a pass
	// through the headers of all timers to its targets.
	mostBytes   = 256 << 10
	mostScanned = 100_000
	rowBytes    = 256 // of a row, besides key and target
	mostFilters = 100 // of one consumer
	// listSpare is the time to answer: with less left, a page ends early.
	listSpare = 500 * time.Millisecond
)

// Filter chooses timers.
type Filter struct {
	Targets []string // patterns, which must not overlap; none for all
	Key     string   // * stands for any characters; empty for all
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
	State      timer.Outcome   `json:"state"`
	Key        string          `json:"key"`
	Target     string          `json:"target"`
	Generation uint64          `json:"generation"`
	Due        time.Time       `json:"due,omitzero"`
	Became     message.Outcome `json:"became,omitempty"`
	Size       int             `json:"size"` // of the body
	Why        string          `json:"why,omitempty"`
	Recurring  *Recurring      `json:"recurring,omitempty"` // nil for what fires once

	sequence uint64
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
			return refusef(codeBad, "target %q: tokens separated by dots; * for one token, > for the rest", target)
		}
	}
	if !slices.Contains([]timer.Outcome{"", timer.Pending, timer.Paused, timer.Fired, timer.Cancelled}, f.State) {
		return refusef(codeBad, "state %q: want pending, paused, fired or cancelled", f.State)
	}
	if p.Limit < 0 || p.Limit > MostLimit {
		return refusef(codeBad, "limit %d: want 1 to %d", p.Limit, MostLimit)
	}
	return nil
}

// fill scans until the page is full.
func (t *Timers) fill(ctx context.Context, all *Listing, f Filter, p Page) error {
	names := t.Policy.Names
	scan := t.Scan
	scan.Stream, scan.For, scan.HeadersOnly = names.TimersStream(), "timers", true
	scan.From, scan.To = p.After+1, all.UpTo
	scan.Filters = f.subjects(names)
	limit, bytes, last := p.Limit, 0, p.After
	if limit == 0 {
		limit = DefaultLimit
	}
	for s, err := range scan.All(ctx) {
		if err != nil {
			return err
		}
		row := t.rowOf(s)
		if len(all.Timers) >= limit || bytes >= mostBytes || all.Scanned >= mostScanned || all.Scanned > 0 && late(ctx) {
			all.Next = last
			return errEnough
		}
		all.Scanned++
		last = s.Sequence
		if noise := strings.ContainsAny(s.Subject, "*> "); !noise && f.takes(row) {
			all.Timers = append(all.Timers, row)
			bytes += rowBytes + 2*len(row.Key) + 2*len(row.Target) + len(row.Why)
		}
	}
	return nil
}

// Recurs goes through all that recurs, page by page, and gives each timer once. A series whose round fires meanwhile
// has a new entry, behind all pages: what is there then is gone through, too, until it is one page.
func (t *Timers) Recurs(ctx context.Context, f Filter) iter.Seq2[Row, error] {
	f.Recurring = true
	return func(yield func(Row, error) bool) {
		given := make(map[string]bool) // by subject
		p, pages := Page{Limit: MostLimit}, 1
		for {
			l, err := t.List(ctx, f, p)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range l.Timers {
				subject := t.Policy.Names.Timer(r.Key, r.Target)
				if !given[subject] && !yield(r, nil) {
					return
				}
				given[subject] = true
			}
			switch {
			case l.Next > 0:
				p.After, p.UpTo = l.Next, l.UpTo
				pages++
			case pages > 1:
				p, pages = Page{Limit: MostLimit, After: l.UpTo}, 1
			default:
				return
			}
		}
	}
}

// subjects are those of all timers that may be meant. One key costs a look at what has that key, and no pass.
func (f Filter) subjects(names message.Names) (all []string) {
	key := "*"
	if message.ParseKey(f.Key) == nil {
		key = f.Key
	}
	for _, target := range f.Targets {
		all = append(all, names.Timer(key, target))
	}
	if len(f.Targets) == 0 {
		all = append(all, names.Timer(key, ">"))
	}
	return all
}

// dropReplaced leaves out the rows of entries that have another behind them on their subject: what was replaced stays
// until a broker removes it. A series whose next round was stored since the page began is no less there: in a list of
// what recurs, that round takes its place.
func (t *Timers) dropReplaced(ctx context.Context, all *Listing, f Filter) error {
	last, err := t.lastRows(ctx, all.Timers)
	if err != nil {
		return err
	}
	kept := []Row{}
	for _, r := range all.Timers {
		subject := t.Policy.Names.Timer(r.Key, r.Target)
		now := last[subject]
		if now.sequence == r.sequence || f.Recurring && now.sequence > all.UpTo && f.takes(now) {
			kept = append(kept, now)
			delete(last, subject)
		}
	}
	all.Timers = kept
	return nil
}

// lastRows are those of the last entries of the same timers, by subject.
func (t *Timers) lastRows(ctx context.Context, rows []Row) (map[string]Row, error) {
	last := make(map[string]Row, len(rows))
	names := t.Policy.Names
	for rows := range slices.Chunk(rows, mostFilters) {
		scan := t.Scan
		scan.Stream, scan.For, scan.HeadersOnly, scan.Last = names.TimersStream(), "timers", true, true
		for _, r := range rows {
			scan.Filters = append(scan.Filters, names.Timer(r.Key, r.Target))
		}
		slices.Sort(scan.Filters)
		scan.Filters = slices.Compact(scan.Filters)
		for s, err := range scan.All(ctx) {
			if err != nil {
				return nil, err
			}
			last[s.Subject] = t.rowOf(s)
		}
	}
	return last, nil
}

// late reports whether the asker is about to lose patience.
func late(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < listSpare
}

// rowOf is what an entry says by its header.
func (t *Timers) rowOf(s lane.Stored) Row {
	in := s.Incoming(t.Policy.Names.TimersStream())
	in.BodyLeft = true
	addr := t.Policy.Names.Parse(in.Subject)
	found := timer.Found{Sequence: in.Sequence, At: in.At, LastSeq: in.Sequence, Entry: t.Policy.ParseTimer(in)}
	_, answer := timer.Decide(timer.Asked{Verb: timer.Get}, found, timer.Doubt{})
	return Row{
		State: answer.Outcome, Key: addr.Token, Target: addr.Target, Generation: answer.Generation, Due: answer.Due,
		Became: answer.Became, Size: s.BodySize(), Why: answer.Why, Recurring: recurring(found.Entry),
		sequence: in.Sequence,
	}
}

func (f Filter) takes(r Row) bool {
	return (f.State == "" || f.State == r.State) &&
		(f.Key == "" || matchKey(f.Key, r.Key)) &&
		(!f.Recurring || r.Recurring != nil) &&
		(f.Set == "" || r.Recurring != nil && r.Recurring.Set == f.Set) &&
		(f.DueFrom.IsZero() || !r.Due.Before(f.DueFrom)) &&
		(f.DueTo.IsZero() || !r.Due.IsZero() && r.Due.Before(f.DueTo))
}

// matchKey reports whether a key matches a pattern in which * stands for any characters. It takes the first place for
// each part, so it never goes back far: a pattern of a stranger costs at most its length times that of the key.
func matchKey(pattern, key string) bool {
	parts := strings.Split(pattern, "*")
	key, ok := strings.CutPrefix(key, parts[0])
	if !ok || len(parts) == 1 {
		return ok && key == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, rest, found := strings.Cut(key, part)
		if !found {
			return false
		}
		key = rest
	}
	return strings.HasSuffix(key, parts[last])
}
