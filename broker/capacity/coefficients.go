package capacity

import "time"

// This file is the table of all coefficients. Each has the command that measures it. The figures are those in
// test/rivals/README.md, of 2026-11-22 and 2026-11-23; some of its tables are of earlier code, as it says.

// CPU of one operation. The server coefficients are for streams with one replica, and for all servers together.
const (
	// A pass: a message is stored in a lane, read by the broker, published to the next lane or the target, committed.
	// delaybroker bench --rate 200000 --for 2s --publishers 2 --beside pipeline --rounds 2
	serverPass = 24 * time.Microsecond
	brokerPass = 12 * time.Microsecond

	// Additional cost of a message that arrives alone. At 1,000 a second, server and broker together use 567 µs for a
	// message, of which 36 are the pass.
	// The journal's table divides it: 215 µs the server, 173 the broker.
	// delaybroker bench --rate 1000 --beside scheduler,pipeline
	// go test -run '^$' -bench Journal -benchtime 1x ./test/rivals
	serverWake = 294 * time.Microsecond
	brokerWake = 237 * time.Microsecond

	// The firing of a timer, and the marker of one that was cancelled: claim, delivery, outcome, two deletes. Its set
	// counts as a pass, and so does its marker in each lane. delaybroker bench timers --beside scheduler
	serverFiring = 158 * time.Microsecond
	brokerFiring = 123 * time.Microsecond

	// A round of a series, with the first pass of the next round's marker.
	// delaybroker bench rounds --beside scheduler
	serverRound = 116 * time.Microsecond
	brokerRound = 134 * time.Microsecond

	// With replicas, each copy costs the servers 1.09 times the only copy (173 µs to 53, for three), and the broker
	// 1.24 times (52 µs to 42). 30,000 at one instant; other numbers of replicas than one and three are not measured.
	// go test -run '^$' -bench Instances -benchtime 1x ./test/rivals
	copyFactor   = 1.09
	brokerFactor = 1.24
)

// wakesApart is the rate in messages a second up to which each wakes the processes for itself.
// delaybroker bench --rate 1000 --beside scheduler,pipeline
const wakesApart = 1000

// Bytes.
const (
	// A waiting message in the server's memory.
	// delaybroker bench pending --for 10s
	serverPending = 62
	// A subject in the server's memory, with a schedule of the server's own. A timer is likewise one subject with one
	// message. delaybroker bench pending --beside scheduler
	serverSubject = 400
	// An id in a stream's duplicate window: computed. ddentry of nats-server 2.15 is 32 bytes, the id some 40, and its
	// entries in a map and a list the rest.
	serverID = 128
	// brokerOwn is a broker without messages, brokerHold the default of DELAY_MEMORY: see Memory in OPERATIONS.md. A
	// process takes at most brokerOwn plus twice brokerHold; 571 MB were measured. delaybroker bench burst --count 1000000
	// --beside pipeline
	brokerOwn, brokerHold = 48 << 20, 256 << 20

	// Bytes that nats-server stores in addition to the body, with a target of 25 characters: read off the streams' state
	// after delaybroker pub --level 1h, pub --in 1h45m (its hop), and pub --in 5h30m --key (its entry and its marker).
	storedRequest = 64
	storedHop     = 408
	storedEntry   = 157
	storedMarker  = 502
	// Bytes of a message on the wire in addition to those stored: the reply subject, and the answer. Computed from the
	// protocol.
	wire = 120
)

// Duplicate windows of streams.
const (
	laneWindow   = 30 * time.Second // DELAY_DEDUP_WINDOW
	targetWindow = 2 * time.Minute  // nats-server's default for the targets' streams
)

// Maximum throughput of one stream, per second, on two cores: with one replica, and with three.
var (
	// Messages through one lane.
	// delaybroker bench --rate 200000 --for 2s --publishers 2 --beside pipeline --rounds 2
	// NATS_URL=… delaybroker bench --rate 50000 --for 2s --publishers 2 --beside pipeline
	maxLane = bound{53_000, 34_000}

	// Deliveries into one target's stream: the bare pipeline, of whose rate the broker has 0.57 with 51,000, and 0.89
	// with 43,000.
	// delaybroker bench burst --beside scheduler,pipeline --rounds 2
	// NATS_URL=… delaybroker bench burst --count 30000 --beside scheduler,pipeline
	maxTarget = bound{89_000, 48_000}

	// Timers: two deletes for each, 60 µs of the server in a profile, one after the other in the stream. That is a bound
	// by arithmetic. With replicas it is taken to be less by as much as a lane's.
	// delaybroker bench timers --beside scheduler
	maxTimers = bound{16_000, 10_000}

	// Rounds. With replicas likewise.
	// delaybroker bench rounds --beside scheduler
	maxRounds = bound{22_000, 14_000}
)

type bound struct{ single, replicated float64 }

func (b bound) with(replicas int) float64 {
	if replicas > 1 {
		return b.replicated
	}
	return b.single
}
