package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"delaybroker/broker/timer"
)

// dueEntry is the newest entry of a pending timer.
type dueEntry struct {
	due      int64 // unix nanoseconds
	sequence uint64
	subject  string
}

// listByDue returns a page of the pending timers that f matches, the next due first. The page begins after the timer
// that has the generation p.Start, and is due at f.DueFrom. listByDue reads the headers of all entries that f may
// match, because the stream has them in the order in which they were set.
func (t *Timers) listByDue(ctx context.Context, f Filter, p Page) (Listing, error) {
	f.State = timer.Pending
	listing := Listing{Timers: []Row{}, At: time.Now().UTC()}
	newest, err := t.newestEntries(ctx, f, &listing)
	if err != nil {
		return Listing{}, err
	}
	all := make([]dueEntry, 0, len(newest))
	for _, e := range newest {
		if p.Start == 0 || e.due > f.DueFrom.UnixNano() || e.sequence > p.Start {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b dueEntry) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.sequence, b.sequence))
	})
	if limit := cmp.Or(p.Limit, defaultLimit); len(all) > limit {
		all = all[:limit]
		last := all[limit-1]
		listing.Next, listing.NextDue = last.sequence, time.Unix(0, last.due).UTC()
	}
	listing.Timers, err = readRows(len(all), func(i int) (*Row, error) {
		e := all[i]
		in, found, err := t.Entries().Next(ctx, e.subject, e.sequence)
		if err != nil || !found || in.Sequence != e.sequence { // a newer entry has replaced it
			return nil, err
		}
		return t.currentRow(ctx, t.rowOf(in, len(in.Data)), e.sequence, f)
	})
	if err != nil {
		return Listing{}, fmt.Errorf("read the stream of timers: %w", err)
	}
	return listing, nil
}

// newestEntries returns the newest entry of each pending timer that f matches, by subject.
func (t *Timers) newestEntries(ctx context.Context, f Filter, listing *Listing) (map[string]dueEntry, error) {
	end, err := t.Entries().End(ctx, "")
	if err != nil {
		return nil, endError(err)
	}
	newest := make(map[string]dueEntry)
	for s, err := range t.entries(ctx, f, 1, end.LastSeq) {
		if err != nil {
			return nil, fmt.Errorf("read the stream of timers: %w", err)
		}
		if listing.Scanned >= maxScanned || nearDeadline(ctx, 2*listReserve) {
			listing.Partial = true
			break
		}
		listing.Scanned++
		if row := t.rowOf(s.Incoming(t.Policy.Names.TimersStream()), s.BodySize()); f.matches(row) {
			newest[s.Subject] = dueEntry{row.Due.UnixNano(), s.Sequence, s.Subject}
		} else {
			delete(newest, s.Subject) // the entry replaces or ends the timer
		}
	}
	return newest, nil
}
