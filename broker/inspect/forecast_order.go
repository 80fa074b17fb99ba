package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// maxCuts is the maximum number of count requests that bisect sends for a forecast.
const maxCuts = 300

// A cut is the time at which a bucket begins or ends. An order has, for each cut, the number of the messages that
// clients published to a level and that leave it at the cut or later. In a level all messages wait equally long, so
// these messages were stored at the cut minus the delay, or later. The server counts the messages stored since a time.
// The count is exact, even if some messages were deleted, provided that the clocks of the stream's leaders agreed, and
// that the counting replica does not lag.
//
//	remaining[0]      all messages
//	remaining[n+1]    messages that leave at cuts[n] or later
//	remaining[last]   zero
type order struct {
	*segment
	cuts      []time.Time
	remaining []uint64
	known     []bool // known[n] reports whether remaining[n] was determined
}

func newOrder(s *segment, cuts []time.Time) *order {
	o := &order{segment: s, cuts: cuts, remaining: make([]uint64, len(cuts)+2), known: make([]bool, len(cuts)+2)}
	o.remaining[0], o.known[0], o.known[len(cuts)+1] = s.messages, true, true
	return o
}

// A gap is two indexes of remaining with known numbers, and only unknown numbers between them, if any.
type gap struct {
	*order
	low, high int
}

func (g gap) width() uint64 { return g.remaining[g.low] - g.remaining[g.high] }
func (g gap) middle() int   { return (g.low + g.high) / 2 }

// isExact reports whether the known numbers say when the messages of the gap leave. If all gaps are exact, departures
// is exact.
func (g gap) isExact() bool { return g.high-g.low == 1 || g.width() == 0 }

// gaps returns all gaps, in their order.
func (o *order) gaps() (gaps []gap) {
	low := 0
	for high := 1; high < len(o.remaining); high++ {
		if o.known[high] {
			gaps = append(gaps, gap{o, low, high})
			low = high
		}
	}
	return gaps
}

// bisect halves the gaps of all orders, the widest first, until no gap contains messages, or maxRequests requests were
// sent.
func (f *forecast) bisect(ctx context.Context, orders []*order, maxRequests int) error {
	for maxRequests > 0 {
		var gaps []gap
		for _, o := range orders {
			gaps = append(gaps, slices.DeleteFunc(o.gaps(), gap.isExact)...)
		}
		slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(b.width(), a.width()) })
		gaps = gaps[:min(len(gaps), maxConcurrent, maxRequests)]
		if len(gaps) == 0 {
			break
		}
		maxRequests -= len(gaps)
		f.report.CountRequests += len(gaps)
		halve := func(ctx context.Context, n int) error { return f.bisectGap(ctx, gaps[n]) }
		if err := fanOut(ctx, len(gaps), halve); err != nil {
			return err
		}
	}
	return nil
}

// bisectGap requests the count in the middle of a gap. Clients and brokers store and remove messages between two
// requests, so the count may lie outside the gap. The numbers of an order must not increase, so bisectGap limits the
// count to the gap.
func (f *forecast) bisectGap(ctx context.Context, g gap) error {
	middle := g.middle()
	scan := f.scan(g.segment)
	scan.Since = g.cuts[middle-1].Add(-g.spec.Delay)
	count, err := scan.Count(ctx)
	if err != nil {
		return scanError(g.Stream, err)
	}
	g.remaining[middle], g.known[middle] = min(max(count, g.remaining[g.high]), g.remaining[g.low]), true
	return nil
}

// departures returns the number of messages that leave the level in each slot: before the first cut, between two cuts,
// and from the last cut on. Between two known numbers, it spreads the messages evenly over the slots. In fact all of
// these messages may leave in one slot, so the maximum error of a slot is what the other slots got.
func (o *order) departures() []estimate {
	estimates := make([]estimate, 0, len(o.remaining)-1)
	for _, g := range o.gaps() {
		width, slots := float64(g.width()), g.high-g.low
		number := width / float64(slots)
		estimates = append(estimates, slices.Repeat([]estimate{{number: number, bound: width - number}}, slots)...)
	}
	return estimates
}
