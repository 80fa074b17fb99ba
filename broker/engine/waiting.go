package engine

import (
	"bytes"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
	"delaybroker/wheel"
)

const (
	// packedOverhead is the memory in bytes of a packed message in addition to its request and body: its struct, its
	// places on the wheel and in the cursor, and the spare capacity of wheel and cursor while they grow. TestWaitingCost
	// measures the overhead.
	packedOverhead = 192
	// alarmOverhead is the memory in bytes of a named timer's alarm, with its strings and its series.
	// TestWaitingTimerCost measures the overhead.
	alarmOverhead = 512
	// minPackedWait is the minimum wait for which a message is packed.
	minPackedWait = 100 * time.Millisecond
	// maxPackedBody is the maximum size in bytes of a body that packing copies. A larger body stays in the array in which
	// the body was received together with its headers.
	maxPackedBody = 4 << 10
	// Up to 1/growthShare of a lane's memory stays free for unpacking messages.
	growthShare = 4
)

// packed is a message that waits on the wheel, in the smallest form from which its flight can be restored.
//
// A flight takes two kibibytes, and some 25,000 flights fit into a lane's part of the default memory. Three times as
// many packed messages fit, and twice as many packed timers. So if 100,000 messages are due at the same time, most of
// them are read before they are due.
type packed struct {
	request       string // as Request.Pack encodes it
	data          []byte // the body
	sequence      uint64
	at            int64 // when the message was stored: Unix time in nanoseconds
	mark          lane.Mark
	overdueHandle wheel.Handle
	timer         *role.Alarm // see flight.timer
	loaded        int32       // see flight.loaded
	awaitsHop     bool        // see flight.awaitsHop
	size          int32       // see flight.size
	wire          int32       // see lane.Message.Size
}

// wheelEntry is an entry of the wheel: either a flight or a packed message.
type wheelEntry struct {
	flight *flight
	packed *packed
}

// packOrHold puts a message on the wheel, packed if it waits for at least minPackedWait and can be packed.
func (f *flights) packOrHold(fl *flight, until, now leader.Time) {
	if until.Sub(now) < minPackedWait || !f.pack(fl, until) {
		f.hold(fl, until)
	}
}

// pack packs a message and puts it on the wheel. It returns false if the message cannot be packed.
func (f *flights) pack(fl *flight, until leader.Time) bool {
	if fl.problem != nil || fl.timer != nil && !f.packsTimers || fl.sent != nil || fl.keyWait != nil ||
		fl.tries+fl.silences > 0 || fl.refusedBy != "" {
		return false
	}
	f.scratch = fl.request.Pack(f.scratch[:0])
	p := &packed{
		request: string(f.scratch), data: fl.Data, sequence: fl.Sequence, at: fl.At.UnixNano(), mark: fl.mark,
		overdueHandle: fl.overdueHandle, timer: fl.timer,
		loaded: int32(fl.loaded), awaitsHop: fl.awaitsHop, size: int32(fl.size), wire: int32(fl.Size),
	}
	if len(p.data) <= maxPackedBody {
		p.data = bytes.Clone(p.data)
	}
	f.wheel.Add(until.Stamp(), wheelEntry{packed: p})
	f.packed++
	if p.awaitsHop {
		f.hopWaits++
	}
	f.bytes += p.cost() - fl.size
	f.growth -= fl.growth
	return true
}

// unpack restores the flight of a packed message.
func (f *flights) unpack(p *packed) *flight {
	fl := &flight{
		Message: lane.Message{Sequence: p.sequence, At: time.Unix(0, p.at).UTC(), Size: int(p.wire), Data: p.data},
		mark:    p.mark, overdueHandle: p.overdueHandle, awaitsHop: p.awaitsHop, size: int(p.size),
		request: message.Unpack(p.request), timer: p.timer, loaded: int(p.loaded),
	}
	fl.growth = fl.size - p.cost()
	f.packed--
	f.bytes += fl.growth
	f.growth += fl.growth
	return fl
}

// cost returns the memory of a packed message, in bytes.
func (p *packed) cost() int {
	body := len(p.data)
	if body > maxPackedBody {
		body = max(body, int(p.wire))
	}
	n := len(p.request) + body + packedOverhead
	if p.timer != nil {
		n += alarmOverhead
	}
	return n + n/4
}

// reserve returns the number of bytes that must stay free for unpacking the packed messages.
func (f *flights) reserve() int64 {
	return min(int64(f.packed)*flightOverhead, max(0, f.mayGrow()-int64(f.growth)))
}

func (f *flights) mayGrow() int64 { return f.account.limit() / growthShare }

// blocked reports whether there is no memory to unpack another message. Memory becomes free when messages have arrived.
func (f *flights) blocked() bool {
	return f.packed > 0 && int64(f.growth) >= f.mayGrow() && !f.account.room(0)
}
