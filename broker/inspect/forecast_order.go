package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// maxCuts is the maximum number of count requests to the server. A count gives the position in a level at which a
// bucket begins.
const maxCuts = 300

// An order has, for each cut (the time at which a bucket begins or ends), the number of a level's messages that leave
// the level at the cut or later. In a level all messages wait equally long, so a message that leaves at a time was
// stored at that time minus the delay. The server can count the messages stored since then. Such a count is exact, even
// if some messages were deleted, provided that the clocks of the stream's leaders agreed.
//
//	from[0]      all messages
//	from[n+1]    messages that leave at cuts[n] or later
//	from[last]   zero
type order struct {
	*segment
	cuts  []time.Time
	from  []uint64
	known []bool
}

func newOrder(s *segment, cuts []time.Time) *order {
	o := &order{segment: s, cuts: cuts, from: make([]uint64, len(cuts)+2), known: make([]bool, len(cuts)+2)}
	o.from[0], o.known[0], o.known[len(cuts)+1] = s.messages, true, true
	return o
}

// A gap is two known positions in an order, with unknown positions between them.
type gap struct {
	*order
	low, high int
}

func (g gap) width() uint64 { return g.from[g.low] - g.from[g.high] }
func (g gap) middle() int   { return (g.low + g.high) / 2 }

// gaps returns the gaps that contain messages. If no gap contains messages, departures can derive every position.
func (o *order) gaps() (all []gap) {
	low := 0
	for high := 1; high < len(o.from); high++ {
		if !o.known[high] {
			continue
		}
		if g := (gap{o, low, high}); high-low > 1 && g.width() > 0 {
			all = append(all, g)
		}
		low = high
	}
	return all
}

// bisect halves the gaps of all orders, the widest first. It stops when no gap is left, or after maxRequests requests.
func (f *forecast) bisect(ctx context.Context, orders []*order, maxRequests int) error {
	for maxRequests > 0 {
		var gaps []gap
		for _, o := range orders {
			gaps = append(gaps, o.gaps()...)
		}
		slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(b.width(), a.width()) })
		gaps = gaps[:min(len(gaps), maxConcurrent, maxRequests)]
		if len(gaps) == 0 {
			break
		}
		maxRequests -= len(gaps)
		f.report.CountRequests += len(gaps)
		halve := func(ctx context.Context, n int) error { return f.bisectGap(ctx, gaps[n]) }
		if err := concurrently(ctx, len(gaps), halve); err != nil {
			return err
		}
	}
	return nil
}

// bisectGap requests the position in the middle of a gap. Clients and brokers store and remove messages between two
// requests, so the count may lie outside the gap. bisectGap limits the count to the gap, because the numbers of an
// order must not increase.
func (f *forecast) bisectGap(ctx context.Context, g gap) error {
	at := g.middle()
	scan := f.scan(g.segment)
	scan.Since = g.cuts[at-1].Add(-g.spec.Delay)
	n, err := scan.Count(ctx)
	if err != nil {
		return scanError(g.Stream, err)
	}
	g.from[at], g.known[at] = min(max(n, g.from[g.high]), g.from[g.low]), true
	return nil
}

// departures returns the number of messages that leave the level in each slot. It spreads the messages of a gap evenly
// over its slots. The error is at most the size of the gap.
func (o *order) departures() []estimate {
	at, off := make([]float64, len(o.from)), make([]float64, len(o.from))
	for n := range o.from {
		at[n] = float64(o.from[n])
	}
	for _, g := range o.gaps() {
		for n := g.low + 1; n < g.high; n++ {
			at[n] = at[g.low] - float64(g.width())*float64(n-g.low)/float64(g.high-g.low)
			off[n] = max(at[n]-at[g.high], at[g.low]-at[n])
		}
	}
	// If no message lies between two known positions, all positions between them are known.
	for n := 1; n < len(at)-1; n++ {
		if !o.known[n] && off[n] == 0 {
			at[n] = at[n-1]
		}
	}
	all := make([]estimate, len(o.from)-1)
	for n := range all {
		all[n] = estimate{number: at[n] - at[n+1], bound: off[n] + off[n+1]}
	}
	return all
}
