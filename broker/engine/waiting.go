package engine

import (
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/wheel"
)

const (
	// packedOverhead is the memory of a packed message in addition to its request and body, as TestWaitingCost measures
	// it: its record, its places on the wheel and in the cursor, and the space that these leave free while they grow.
	packedOverhead = 192
	// packSooner is the minimum wait for which a message is packed.
	packSooner = 100 * time.Millisecond
	// packedBody is the size up to which a body is copied behind the packed request. A larger body stays in the array in
	// which it was received, together with its headers only.
	packedBody = 4 << 10
	// growthShare is the part of a lane's memory, one byte in this many, that stays free for unpacking messages.
	growthShare = 4
)

// packed is a message that waits for its time, in the smallest form from which its flight can be made again.
//
// A flight takes two kilobytes, and some 25,000 fit into a lane's part of the default memory. Three times as many
// packed messages fit. So of 100,000 messages that are due at the same time, most are read before.
type packed struct {
	content  []byte // the request, and behind it the body if it is small
	request  int    // bytes of the request
	data     []byte // the body, if it is large
	sequence uint64
	at       int64 // when it was stored, in nanoseconds
	mark     lane.Mark
	overdue  wheel.Handle
	leaves   bool  // see flight.leaves
	size     int32 // see flight.size
	wire     int32 // see lane.Stored.Size
}

// waiting is an entry of the wheel: either a flight or a packed message.
type waiting struct {
	flight *flight
	packed *packed
}

// rest puts a message on the wheel, packed if it waits for long.
func (f *flights) rest(fl *flight, until, now leader.Time) {
	if until.Sub(now) < packSooner || !f.pack(fl, until) {
		f.hold(fl, until)
	}
}

// pack packs a message and puts it on the wheel. It reports whether the message can be packed.
func (f *flights) pack(fl *flight, until leader.Time) bool {
	if fl.problem != nil || fl.timer != nil || fl.sent != nil || fl.unproven != nil ||
		fl.tries+fl.silent > 0 || fl.refused != "" {
		return false
	}
	content, ok := fl.request.Pack(f.scratch[:0])
	if !ok {
		return false
	}
	f.scratch = content
	p := &packed{
		request: len(content), sequence: fl.Sequence, at: fl.At.UnixNano(), mark: fl.mark, overdue: fl.overdue,
		leaves: fl.leaves, size: int32(fl.size), wire: int32(fl.Size),
	}
	if len(fl.Data) <= packedBody {
		content = append(content, fl.Data...)
		f.scratch = content
	} else {
		p.data = fl.Data
	}
	p.content = append(make([]byte, 0, len(content)), content...)
	f.wheel.Add(until.Stamp(), waiting{packed: p})
	f.packed++
	if p.leaves {
		f.leaving++
	}
	f.bytes += p.cost() - fl.size
	f.growth -= fl.grown
	return true
}

// unpack makes a flight of a packed message.
func (f *flights) unpack(p *packed) *flight {
	fl := &flight{
		Stored: lane.Stored{Sequence: p.sequence, At: time.Unix(0, p.at).UTC(), Size: int(p.wire), Data: p.data},
		mark:   p.mark, overdue: p.overdue, leaves: p.leaves, size: int(p.size),
		request: message.Unpack(p.content[:p.request]),
	}
	if p.data == nil {
		fl.Data = p.content[p.request:]
	}
	fl.grown = fl.size - p.cost()
	f.packed--
	f.bytes += fl.grown
	f.growth += fl.grown
	return fl
}

// cost returns the memory of a packed message, in bytes.
func (p *packed) cost() int {
	n := len(p.content) + packedOverhead
	if p.data != nil {
		n += int(p.wire)
	}
	return n + n/4
}

// reserve returns the number of bytes that must stay free for unpacking messages.
func (f *flights) reserve() int64 {
	return min(int64(f.packed)*flightOverhead, max(0, f.mayGrow()-int64(f.growth)))
}

func (f *flights) mayGrow() int64 { return f.account.Limit() / growthShare }

// blocked reports whether there is no room to unpack a message. Answers to unpacked messages make room.
func (f *flights) blocked() bool {
	return f.packed > 0 && int64(f.growth) >= f.mayGrow() && !f.account.Room(0)
}
