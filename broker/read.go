package broker

import (
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

const (
	// readAhead is how long before the last message read leaves its lane reading goes on: what is read is ordered by
	// its own time, so timestamps may fall back by this much without making anything late.
	readAhead = 5 * time.Second
	// readLeast is what a lane may hold however far off it is due, so that a small lane is read at once.
	readLeast      = 256
	readLeastBytes = 1 << 20
	// maxSpan bounds what a cursor remembers, at spanCost bytes each: 16, and as much again while its ring grows.
	maxSpan  = 1 << 20
	spanCost = 32
	// turnItems is how much is read before the loop looks at the time again.
	turnItems = 256
)

// hungry reports whether to read on.
func (w *worker) hungry(local time.Time) bool {
	if w.full() {
		return false
	}
	now, _ := w.clock.now(local)
	resume, later := w.resumeReading()
	return !later || !now.Before(resume)
}

// full reports whether nothing more fits into memory. For the intake, half of it is not used up by what is far: see spill.
func (w *worker) full() bool {
	return w.held >= 2*w.cfg.HoldMessages || w.cursor.Span() >= maxSpan || !w.account.room()
}

// charge brings the account of the lane up to date.
func (w *worker) charge() { w.account.set(int64(w.heldBytes + spanCost*w.cursor.Span())) }

// What a held message costs besides its bytes, as TestHeldCost measures it: what the lane knows of it, what its headers
// are decoded to, and what a publish underway adds.
const (
	heldOverhead   = 7 << 9
	headerOverhead = 256 // of each, besides what it says
)

// cost is how many bytes a message takes while it is held. The allocator rounds up by a quarter at
// most.
func cost(s lane.Stored) int {
	headers := 0
	for name, values := range s.Header {
		for _, v := range values {
			headers += headerOverhead + len(name) + len(v)
		}
	}
	return s.Size + s.Size/4 + headers + heldOverhead
}

// resumeReading is when the lane will be read on, if what was read last stays for long.
func (w *worker) resumeReading() (time.Time, bool) {
	if w.full() || w.last.Sequence == 0 || w.lane.Delay <= readAhead || w.held < readLeast && w.heldBytes < readLeastBytes {
		return time.Time{}, false
	}
	return w.last.At.Add(w.lane.Delay - readAhead), true
}

// readSome takes what is there, up to a bound.
func (w *worker) readSome(item lane.Item) {
	for n := 1; ; n++ {
		w.read(item, time.Now()) // each its own: a time before the item came would be no bound for the leader's clock
		if n == turnItems || w.full() || !w.lease.Held() {
			return
		}
		select {
		case item = <-w.reader.Items():
		default:
			return
		}
	}
}

// read takes in one item of the lane. One of another history goes where it should, but commits nothing.
func (w *worker) read(item lane.Item, local time.Time) {
	w.reader.Took(item)
	h := &held{Stored: item.Stored, mark: w.cursor.Void(), size: cost(item.Stored)}
	if item.Epoch >= w.fresh {
		w.clock.observe(item.Sequence, item.At, local)
		h.mark = w.cursor.Begin(item.Sequence)
		w.last = lane.Stored{Sequence: h.Sequence, At: h.At, Behind: h.Behind}
	}
	in := message.Incoming{
		Stream: w.lane.Stream, Sequence: h.Sequence, At: h.At, Subject: h.Subject, Header: h.Header, Undecodable: h.Undecodable, Data: h.Data,
	}
	if h.request, h.problem = w.policy.Parse(in); h.problem != nil && h.problem.Code == message.UnknownKey {
		h.incoming = in
	}
	h.Header = nil
	w.held++
	w.heldBytes += h.size
	w.charge()
	now, fresh := w.clock.now(local)
	if w.gather(h, now, local) {
		return
	}
	if !fresh || !w.lease.Held() {
		w.wheel.Add(h.At, h) // as soon as the time is known, and the lane ours for certain
		w.undated = true
		return
	}
	if next, any := w.wheel.Next(); any && h.problem == nil && !next.After(h.request.When()) && !h.request.When().After(now) {
		w.wheel.Add(h.request.When(), h) // behind what became due while we read, and is not sent before the next pass
		return
	}
	w.step(h, now)
}

// adopt begins an epoch. If it is of another history, what is held still goes where it should, but commits nothing.
func (w *worker) adopt(e lane.Epoch) {
	if e.Fresh {
		w.fresh = e.Number
		w.cursor.Reset()
		w.commit = commitState{running: w.commit.running, judge: new(lane.Judge)}
		w.last = lane.Stored{}
	}
	w.epoch, w.created = e.Number, e.Info.Created
	w.looked(e.Info)
	if last := &w.last; last.Sequence > 0 { // what it says is of the time before
		last.Behind = min(e.Info.LastSeq-last.Sequence, e.Info.Messages)
	}
	w.adopted()
}
