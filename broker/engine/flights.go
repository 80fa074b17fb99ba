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
	// maxUnproven and maxUnprovenBytes are the maximum number and bytes of a lane's messages that wait for their key.
	// Any more messages with an unknown key count as forged, and become dead letters: a client that forges seals must
	// not fill the lane's memory.
	maxUnproven      = 256
	maxUnprovenBytes = 1 << 20
	// flightOverhead is the memory in bytes that a message takes in addition to its content, as TestFlightCost measures
	// it: the flight, its parsed headers, and its publish.
	flightOverhead = 2 << 10
	// headerOverhead is the memory in bytes of each header that is passed on, in addition to its name and value.
	headerOverhead = 96
)

// flights are the messages that a lane has in memory. Each is in one of these places:
//
//	wheel        until its next decision; packed if it waits for long
//	again        until its next decision, if it was packed before and cannot be packed now
//	untimed      until the leader's time is known, in the order of reading
//	underway     until its publish, delivery or request is answered
//	halted       until a closing pause is over, in the order of due times
//	unchecked    until one of maxChecks requests about duplicates has ended
//
// A message in again must not wait behind packed messages that find no memory. Only the lane's loop uses flights.
type flights struct {
	wheel     *wheel.Wheel[waiting]
	again     *wheel.Wheel[*flight]
	overdue   *wheel.Wheel[struct{}] // the times since which messages are overdue
	untimed   []*flight
	halted    []*flight
	unchecked []*flight
	account   *account // the lane's part of the instance's memory

	count    int // number of messages, in all places
	bytes    int // memory that the messages take
	packed   int // number of packed messages on the wheel
	leaving  int // number of messages on the wheel that wait for a hop
	growth   int // bytes that unpacking has added to messages
	underway int // number of publishes, deliveries and requests without an answer
	checking int // number of requests about duplicates without an answer

	newer map[*flight]struct{} // messages of a newer format, which this broker cannot read

	unproven      int // number of messages that wait for the key of their seal
	unprovenBytes int // the memory of those messages

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

// hold puts a message on the wheel. A message that was packed before is packed again; if it cannot be packed, it goes
// into again.
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

// takeOff takes a message off the wheel. It reports whether the message was on the wheel.
func (f *flights) takeOff(fl *flight) bool {
	if !f.wheel.Remove(fl.waits) {
		return false
	}
	f.leftWheel(fl)
	return true
}

// leftWheel records that a message has left the wheel.
func (f *flights) leftWheel(fl *flight) {
	if fl.leaves {
		fl.leaves = false
		f.leaving--
	}
}

// grow changes the memory of a message by a number of bytes.
func (f *flights) grow(fl *flight, bytes int) {
	fl.size += bytes
	f.bytes += bytes
}

// due takes the due messages off the wheel, in order, as far as there is memory to unpack them.
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
			f.leftWheel(fl)
			if !yield(leader.At(due), fl) || f.blocked() {
				return
			}
		}
	}
}

// wakes returns the time of the first message on the wheel for which there is memory now.
func (f *flights) wakes() (leader.Time, bool) {
	if f.blocked() {
		due, ok := f.again.Next()
		return leader.At(due), ok
	}
	return f.next()
}

// next returns the time of the first message on the wheel.
func (f *flights) next() (leader.Time, bool) {
	due, ok := f.wheel.Next()
	if again, any := f.again.Next(); any && (!ok || again.Before(due)) {
		return leader.At(again), true
	}
	return leader.At(due), ok
}

// waiting returns the number of messages that wait for a time, or for the end of a pause.
func (f *flights) waiting() int {
	return f.wheel.Len() + f.again.Len() + len(f.untimed) + len(f.halted)
}

// setOverdue records the time since which a message is overdue, or that it is not overdue.
func (f *flights) setOverdue(fl *flight, since leader.Time, overdue bool) {
	f.overdue.Remove(fl.overdue)
	if overdue {
		fl.overdue = f.overdue.Add(since.Stamp(), struct{}{})
	}
}

// oldest returns the earliest time since which a message is overdue. A message that waits for a hop leaves the wheel a
// lookahead before it is overdue. Therefore each message on the wheel counts as overdue only a lookahead after its time
// on the wheel. For some messages this is too late; for no message it is too early.
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

// await counts a message whose seal has an unknown key. It reports whether the bounds permit that the message waits.
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

// cost returns the memory of a message, in bytes. The allocator rounds sizes up by at most a quarter.
func cost(s lane.Stored) int {
	headers := 0
	for name, values := range s.Header {
		for _, v := range values {
			if headers += len(v); !message.IsOwnHeader(name) {
				headers += headerOverhead + len(name)
			}
		}
	}
	return s.Size + s.Size/4 + headers + flightOverhead
}
