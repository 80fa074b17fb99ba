package engine

import (
	"iter"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/wheel"
)

const (
	// keysRetry is the interval at which a message whose seal has an unknown key is checked again.
	keysRetry = time.Second
	// At most maxKeyWaits messages of a lane, with at most maxKeyWaitBytes bytes together, may wait for the key of their
	// seal. Further messages with an unknown key count as forged, and become dead letters: a client that forges seals must
	// not fill the lane's memory.
	maxKeyWaits     = 256
	maxKeyWaitBytes = 1 << 20
	// flightOverhead is the memory in bytes that a message takes in addition to its content: the flight, its parsed
	// headers, and its publish. TestFlightCost measures the overhead.
	flightOverhead = 2 << 10
	// headerOverhead is the memory in bytes of each header that the target gets, in addition to its name and value.
	headerOverhead = 96
)

// flights are the messages that a lane has in memory. A message is in one of these places, or, for a named timer, in
// one of the worker's queues of timers to be read:
//
//	wheel        until its next decision; packed if it waits for long
//	expanded     until its next decision, if it was packed before and cannot be packed now
//	untimed      until the leader's time is proven and the lease is held, in the order of reading
//	unanswered   until its publish, delivery or request is answered; only counted
//	closing      until the pause of the target is not closing any more
//	unchecked    until fewer than maxChecks requests about duplicates are unanswered
//
// A message in expanded needs no further memory, so it must not wait behind packed messages, which need memory. Only
// the lane's loop uses flights.
type flights struct {
	wheel     *wheel.Wheel[wheelEntry]
	expanded  *wheel.Wheel[*flight]
	overdue   *wheel.Wheel[struct{}] // for each overdue message, the time from which on it is overdue
	untimed   []*flight
	closing   []*flight
	unchecked []*flight
	account   *account // the lane's part of the instance's memory

	packsTimers bool // false in the timers' lane, because timers.lastSets refers to the flights

	open []*flight // the messages whose deliveries have no result

	count      int // number of messages, in all places
	bytes      int // memory that the messages take, in bytes
	packed     int // number of packed messages on the wheel
	hopWaits   int // number of messages on the wheel that await a hop
	growth     int // bytes that unpacking has added to the messages
	unanswered int // number of publishes, deliveries and requests without an answer
	checks     int // number of requests about duplicates without an answer
	late       int // number of deliveries and requests for which the worker waits after the release of the lease

	newerFormat map[*flight]struct{} // messages of a newer format, which this broker cannot read

	keyWaits     int // number of messages that wait for the key of their seal
	keyWaitBytes int // memory of the messages that wait for their key, in bytes

	scratch []byte // buffer of pack
}

func newFlights(a *account) *flights {
	return &flights{
		wheel: wheel.New[wheelEntry](), expanded: wheel.New[*flight](), overdue: wheel.New[struct{}](),
		account: a, newerFormat: make(map[*flight]struct{}),
	}
}

// begin begins a flight with a message that was read.
func (f *flights) begin(s lane.Message, m lane.Mark) *flight {
	fl := &flight{Message: s, mark: m, size: cost(s)}
	f.count++
	f.bytes += fl.size
	return fl
}

// beginDelivery records that a delivery of the message is open.
func (f *flights) beginDelivery(fl *flight) {
	f.unanswered++
	f.open = append(f.open, fl)
	fl.openPlace = len(f.open)
}

// endDelivery records that the delivery of the message has a result, or that the worker does not wait for it before the
// release of the lease.
func (f *flights) endDelivery(fl *flight) {
	f.unanswered--
	last := f.open[len(f.open)-1]
	f.open[fl.openPlace-1], last.openPlace = last, fl.openPlace
	f.open[len(f.open)-1] = nil
	f.open, fl.openPlace = f.open[:len(f.open)-1], 0
}

// hold puts a message on the wheel. A message that was packed before is packed again. If it cannot be packed, hold puts
// it into expanded.
func (f *flights) hold(fl *flight, until leader.Time) {
	switch {
	case fl.growth == 0:
		if fl.awaitsHop {
			f.hopWaits++
		}
		fl.wheelHandle = f.wheel.Add(until.Stamp(), wheelEntry{flight: fl})
	case !f.pack(fl, until):
		fl.awaitsHop = false
		f.expanded.Add(until.Stamp(), fl)
	}
}

// removeFromWheel removes a message that is not packed from the wheel. It reports whether the message was on the wheel.
func (f *flights) removeFromWheel(fl *flight) bool {
	if !f.wheel.Remove(fl.wheelHandle) {
		return false
	}
	f.endHopWait(fl)
	return true
}

// endHopWait updates hopWaits after a message was removed from the wheel.
func (f *flights) endHopWait(fl *flight) {
	if fl.awaitsHop {
		fl.awaitsHop = false
		f.hopWaits--
	}
}

// takeDue removes the due messages from the wheels and yields them: first those in expanded, and those of each wheel in
// the order of their times. It stops when there is no memory to unpack a message.
func (f *flights) takeDue(now leader.Time) iter.Seq2[leader.Time, *flight] {
	return func(yield func(leader.Time, *flight) bool) {
		for due, fl := range f.expanded.Advance(now.Stamp()) {
			if !yield(leader.At(due), fl) {
				return
			}
		}
		if f.blocked() {
			return
		}
		for due, w := range f.wheel.Advance(now.Stamp()) {
			fl := w.flight
			if fl == nil {
				fl = f.unpack(w.packed)
			}
			f.endHopWait(fl)
			if !yield(leader.At(due), fl) || f.blocked() {
				return
			}
		}
	}
}

// wakeTime returns the earliest time on the wheels. While there is no memory to unpack a message, only the messages in
// expanded count.
func (f *flights) wakeTime() (leader.Time, bool) {
	if f.blocked() {
		due, ok := f.expanded.Next()
		return leader.At(due), ok
	}
	return f.nextTime()
}

// nextTime returns the earliest time on the wheels.
func (f *flights) nextTime() (leader.Time, bool) {
	due, ok := f.wheel.Next()
	if expanded, found := f.expanded.Next(); found && (!ok || expanded.Before(due)) {
		return leader.At(expanded), true
	}
	return leader.At(due), ok
}

// waiting returns the number of messages that wait for a time or for the end of a pause.
func (f *flights) waiting() int {
	return f.wheel.Len() + f.expanded.Len() + len(f.untimed) + len(f.closing)
}

// setOverdue records that a message is overdue from the time since on, or that it is not overdue.
func (f *flights) setOverdue(fl *flight, since leader.Time, overdue bool) {
	f.overdue.Remove(fl.overdueHandle)
	if overdue {
		fl.overdueHandle = f.overdue.Add(since.Stamp(), struct{}{})
	}
}

// oldestOverdue returns the earliest time from which on a message is overdue. A message on the wheels for which
// setOverdue has recorded no time counts as overdue from its time on the wheel plus the lookahead. For a message that
// awaits a hop, this is about right; for the others, it is too late.
func (f *flights) oldestOverdue() (since leader.Time, ok bool) {
	first, ok := f.overdue.Next()
	since = leader.At(first)
	if next, found := f.nextTime(); found && (!ok || next.Add(lookahead).Before(since)) {
		return next.Add(lookahead), true
	}
	return since, ok
}

// end removes a message from memory.
func (f *flights) end(fl *flight) {
	f.count--
	f.bytes -= fl.size
	f.growth -= fl.growth
	f.overdue.Remove(fl.overdueHandle)
	delete(f.newerFormat, fl)
}

// beginKeyWait counts a message whose seal has an unknown key. It reports whether the message may wait, by maxKeyWaits
// and maxKeyWaitBytes.
func (f *flights) beginKeyWait(fl *flight, local time.Time) (room bool) {
	if fl.keyWait.since.IsZero() {
		fl.keyWait.since = local
		f.keyWaits++
		f.keyWaitBytes += fl.size
	}
	return f.keyWaits <= maxKeyWaits && f.keyWaitBytes <= maxKeyWaitBytes
}

// endKeyWait uncounts a message that beginKeyWait counted.
func (f *flights) endKeyWait(fl *flight) {
	fl.keyWait = nil
	f.keyWaits--
	f.keyWaitBytes -= fl.size
}

// cost returns the memory of a message, in bytes. It adds a quarter of the size, because the allocator rounds sizes up.
func cost(s lane.Message) int {
	return s.Size + s.Size/4 + headersCost(s.Header) + flightOverhead
}

// headersCost returns the memory of decoded headers, in bytes. Of the broker's headers, only the values count, because
// their names are constants.
func headersCost(h message.Header) (bytes int) {
	for name, values := range h {
		for _, v := range values {
			if bytes += len(v); !message.IsBrokerHeader(name) {
				bytes += headerOverhead + len(name)
			}
		}
	}
	return bytes
}
