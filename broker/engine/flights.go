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
	// keysRetry is the interval at which a message with a seal of an unknown key is checked again.
	keysRetry = time.Second
	// maxUnproven and maxUnprovenBytes bound the messages of a lane that wait until their key is known. Further
	// messages count as forged, and become dead letters: a client that forges seals must not fill the lane.
	maxUnproven      = 256
	maxUnprovenBytes = 1 << 20
	// flightOverhead is the memory that a message takes in addition to its bytes, as TestFlightCost measures it: the
	// lane's record of it, its parsed headers, and a publish in flight.
	flightOverhead = 2 << 10
	// headerOverhead is the memory of each header that is passed on, in addition to its name and value.
	headerOverhead = 96
)

// flights are the messages that a lane has in memory: each from being read to having arrived, in one of these places
//
//	on the wheel      until something is to be decided about it; mostly packed
//	again             likewise, after a try that failed: it must not wait behind packed messages that find no room
//	untimed           until the leader's time is known; in the order of reading
//	underway          its publish, or a question about it, is not answered yet
//	halted            until a closing pause is over; in the order of due times
//	unchecked         until one of the questions about copies has ended
//
// The lane's loop owns flights.
type flights struct {
	wheel     *wheel.Wheel[waiting]
	again     *wheel.Wheel[*flight]
	overdue   *wheel.Wheel[struct{}] // when messages in flight should have left
	untimed   []*flight
	halted    []*flight
	unchecked []*flight
	account   *account // the lane's part of the instance's memory

	count    int // messages, wherever they wait
	bytes    int // of memory that they take
	packed   int // messages on the wheel that are packed
	leaving  int // messages on the wheel that are to be moved
	growth   int // bytes that unpacking has added to messages
	underway int // publishes and requests without an answer
	checking int // of these, requests about copies

	newer map[*flight]struct{} // messages of a newer format, which cannot be read

	unproven      int // messages with a seal of an unknown key
	unprovenBytes int

	scratch []byte // buffer of pack
}

func newFlights(a *account) *flights {
	return &flights{wheel: wheel.New[waiting](), again: wheel.New[*flight](), overdue: wheel.New[struct{}](), account: a,
		newer: make(map[*flight]struct{})}
}

// take begins a flight with a message that was read.
func (f *flights) take(s lane.Stored, m lane.Mark) *flight {
	fl := &flight{Stored: s, mark: m, size: cost(s)}
	f.count++
	f.bytes += fl.size
	return fl
}

// hold puts a message on the wheel. A message that was packed before is packed again, or waits separately: see again.
func (f *flights) hold(fl *flight, until leader.Time) {
	switch {
	case fl.grown == 0:
		if fl.leaves {
			f.leaving++
		}
		fl.waits = f.wheel.Add(until.Stamp(), waiting{flight: fl})
	case !f.pack(fl, until):
		fl.leaves = false
		f.again.Add(until.Stamp(), fl)
	}
}

// takeOff takes a message off the wheel, and reports whether it was there.
func (f *flights) takeOff(fl *flight) bool {
	if !f.wheel.Remove(fl.waits) {
		return false
	}
	f.took(fl)
	return true
}

// took notes that a message is off the wheel.
func (f *flights) took(fl *flight) {
	if fl.leaves {
		fl.leaves = false
		f.leaving--
	}
}

// grow accounts more bytes of a message.
func (f *flights) grow(fl *flight, bytes int) {
	fl.size += bytes
	f.bytes += bytes
}

// due takes the due messages off the wheel, in order, as far as there is room to unpack them.
func (f *flights) due(now leader.Time) iter.Seq2[leader.Time, *flight] {
	return func(yield func(leader.Time, *flight) bool) {
		for due, fl := range f.again.Advance(now.Stamp()) {
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
			f.took(fl)
			if !yield(leader.At(due), fl) || f.blocked() {
				return
			}
		}
	}
}

// wakes returns the due time of the first message that can be taken off the wheel now.
func (f *flights) wakes() (leader.Time, bool) {
	if f.blocked() {
		due, ok := f.again.Next()
		return leader.At(due), ok
	}
	return f.next()
}

// next returns the due time of the first message on the wheel.
func (f *flights) next() (leader.Time, bool) {
	due, ok := f.wheel.Next()
	if again, any := f.again.Next(); any && (!ok || again.Before(due)) {
		return leader.At(again), true
	}
	return leader.At(due), ok
}

// waiting returns the number of messages that wait on the wheel or for the time.
func (f *flights) waiting() int {
	return f.wheel.Len() + f.again.Len() + len(f.untimed) + len(f.halted)
}

// date notes since when a message should have left, or that it is not overdue.
func (f *flights) date(fl *flight, since leader.Time, overdue bool) {
	f.overdue.Remove(fl.overdue)
	if overdue {
		fl.overdue = f.overdue.Add(since.Stamp(), struct{}{})
	}
}

// oldest returns the time when the oldest message should have left: of the dated messages, or of those on the wheel. A
// message that is to be moved comes off the wheel a lookahead before it should leave. So every message on the wheel
// counts as overdue only after a lookahead: possibly too late, but never too early.
func (f *flights) oldest() (since leader.Time, ok bool) {
	dated, ok := f.overdue.Next()
	since = leader.At(dated)
	if next, any := f.next(); any && (!ok || next.Add(lookahead).Before(since)) {
		return next.Add(lookahead), true
	}
	return since, ok
}

// end removes a message from memory.
func (f *flights) end(fl *flight) {
	f.count--
	f.bytes -= fl.size
	f.growth -= fl.grown
	f.overdue.Remove(fl.overdue)
	delete(f.newer, fl)
}

// await counts a message with a seal of an unknown key, and reports whether there is room for it to wait.
func (f *flights) await(fl *flight, local time.Time) (room bool) {
	if fl.unproven.since.IsZero() {
		fl.unproven.since = local
		f.unproven++
		f.unprovenBytes += fl.size
	}
	return f.unproven <= maxUnproven && f.unprovenBytes <= maxUnprovenBytes
}

// proven ends a wait that await began.
func (f *flights) proven(fl *flight) {
	fl.unproven = nil
	f.unproven--
	f.unprovenBytes -= fl.size
}

// cost returns the bytes that a message takes in memory. The allocator rounds up by a quarter at most.
func cost(s lane.Stored) int {
	headers := 0
	for name, values := range s.Header {
		for _, v := range values {
			if headers += len(v); !message.Ours(name) {
				headers += headerOverhead + len(name)
			}
		}
	}
	return s.Size + s.Size/4 + headers + flightOverhead
}
