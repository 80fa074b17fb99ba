package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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
	State   timer.Outcome // Pending, Fired or Cancelled; empty for all
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
	s, err := t.sample(ctx, t.Policy.Names.TimersStream())
	if err == nil && !s.Quorate {
		err = ErrLeader
	}
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
		err = t.dropReplaced(ctx, &all)
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
	if !slices.Contains([]timer.Outcome{"", timer.Pending, timer.Fired, timer.Cancelled}, f.State) {
		return refusef(codeBad, "state %q: want pending, fired or cancelled", f.State)
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
	for _, target := range f.Targets {
		scan.Filters = append(scan.Filters, names.Timer("*", target))
	}
	if len(f.Targets) == 0 {
		scan.Filters = []string{names.TimerFilter()}
	}
	limit, bytes, last := p.Limit, 0, p.After
	if limit == 0 {
		limit = DefaultLimit
	}
	for s, err := range scan.All(ctx) {
		if err != nil {
			return err
		}
		in := s.Incoming(scan.Stream)
		in.BodyLeft = true
		row := t.row(in)
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

// dropReplaced leaves out the rows of entries that have another behind them on their subject: what was replaced stays
// until a broker removes it.
func (t *Timers) dropReplaced(ctx context.Context, all *Listing) error {
	last := make(map[string]uint64, len(all.Timers))
	names := t.Policy.Names
	for rows := range slices.Chunk(all.Timers, mostFilters) {
		scan := t.Scan
		scan.Stream, scan.For, scan.HeadersOnly, scan.Last = names.TimersStream(), "timers", true, true
		for _, r := range rows {
			scan.Filters = append(scan.Filters, names.Timer(r.Key, r.Target))
		}
		slices.Sort(scan.Filters)
		scan.Filters = slices.Compact(scan.Filters)
		for s, err := range scan.All(ctx) {
			if err != nil {
				return err
			}
			last[s.Subject] = s.Sequence
		}
	}
	all.Timers = slices.DeleteFunc(all.Timers, func(r Row) bool {
		return last[names.Timer(r.Key, r.Target)] != r.sequence
	})
	return nil
}

// late reports whether the asker is about to lose patience.
func late(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && time.Until(end) < listSpare
}

// row is what an entry says by its header.
func (t *Timers) row(in message.Incoming) Row {
	addr := t.Policy.Names.Parse(in.Subject)
	found := timer.Found{Sequence: in.Sequence, At: in.At, LastSeq: in.Sequence, Entry: t.Policy.ParseTimer(in)}
	_, answer := timer.Decide(timer.Asked{Verb: timer.Get}, found, timer.Doubt{})
	r := Row{
		State: answer.Outcome, Key: addr.Token, Target: addr.Target, Generation: answer.Generation, Due: answer.Due,
		Became: answer.Became, Why: answer.Why, sequence: in.Sequence,
	}
	r.Size, _ = strconv.Atoi(strings.Join(in.Header["Nats-Msg-Size"], "")) // of the server
	return r
}

func (f Filter) takes(r Row) bool {
	return (f.State == "" || f.State == r.State) &&
		(f.Key == "" || matchKey(f.Key, r.Key)) &&
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
