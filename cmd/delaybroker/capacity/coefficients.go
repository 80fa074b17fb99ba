package capacity

import "time"

// This file has all coefficients, each with the command that measures it, or with its computation. The command compare
// is in test/rivals. The measurements of 2026-11-22 and 2026-11-23 are in test/rivals/README.md. That file says which
// of them are of earlier code.

// CPU time of one operation. The server coefficients are totals of all servers, for streams with one replica.
const (
	// serverPass and brokerPass are for one pass of a message: the server stores the message in a lane, the broker
	// reads it, publishes it to the next lane or the target, and commits. Measured by compare --rate 200000
	// --for 2s --publishers 2 --beside pipeline --rounds 2
	serverPass = 24 * time.Microsecond
	brokerPass = 12 * time.Microsecond

	// serverWake and brokerWake are the additional cost of a message that arrives alone. At 1,000 messages a second,
	// server and broker together use 567 µs for a message. The pass takes 36 µs of the 567 µs. The remaining time is
	// divided between server and broker in the ratio 215 to 173, as in the table "The journal" of
	// test/rivals/README.md. Measured by compare --rate 1000 --beside scheduler,pipeline, and by go test -run
	// '^$' -bench Journal -benchtime 1x ./test/rivals
	serverWake = 294 * time.Microsecond
	brokerWake = 237 * time.Microsecond

	// serverFiring and brokerFiring are for the firing of a timer: its claim (see package timer), delivery, outcome, and
	// two deletes. The measurement also cancels one timer for each that fires, so the coefficients include the marker of a
	// cancelled timer. They exclude the set of the timer and each pass of its marker, which have the costs of a pass.
	// Measured by compare timers --beside scheduler
	serverFiring = 158 * time.Microsecond
	brokerFiring = 123 * time.Microsecond

	// serverRound and brokerRound are for a round of a series, with the first pass of the next round's marker. Measured
	// by compare rounds --beside scheduler
	serverRound = 116 * time.Microsecond
	brokerRound = 134 * time.Microsecond

	// With several replicas, each copy costs the servers 1.09 times as much as a single replica (173 µs for three
	// copies, 53 µs for one). The broker's cost is 1.24 times as much (52 µs and 42 µs). Measured with 30,000 messages
	// due at the same time, and only for one and three replicas, by go test -run '^$' -bench Instances -benchtime 1x
	// ./test/rivals
	copyFactor   = 1.09
	brokerFactor = 1.24
)

// firstPending and furtherPending are the bytes of a pending message in the memory of each server that has a copy: of
// the first firstCount messages, and of each further one. They hold for up to some hundred targets; with 100,000
// targets, they were 340 and 134. Measured by go test -run '^$' -bench Pending -benchtime 1x -timeout 2h ./test/rivals
var (
	firstPending   = byReplicas{69, 285}
	furtherPending = byReplicas{10, 38}
)

const firstCount = 1_000_000

// pendingMemory returns the bytes of pending messages in the memory of each server that has a copy.
func pendingMemory(messages float64, replicas int) float64 {
	first := min(messages, firstCount)
	return first*firstPending.of(replicas) + (messages-first)*furtherPending.of(replicas)
}

// maxWakeRate is the maximum rate, in messages a second, at which each message wakes the processes. Measured by
// compare --rate 1000 --beside scheduler,pipeline
const maxWakeRate = 1000

// Bytes.
const (
	// serverSubject is for a subject in the server's memory, measured with a schedule of nats-server. A timer is one
	// subject with one message, as a schedule is. Measured by compare pending --beside scheduler
	serverSubject = 400
	// serverID is for an id in a stream's duplicate window. It is computed from nats-server 2.15: ddentry has 32 bytes,
	// the id some 40, and the entries in a map and a list have the rest.
	serverID = 128
	// brokerBase is the memory of a broker without messages, and brokerBuffer the default of DELAY_MEMORY: see Memory
	// in OPERATIONS.md. A process takes at most brokerBase plus twice brokerBuffer. The measurement was 571 MB, by
	// compare burst --count 1000000 --beside pipeline
	brokerBase, brokerBuffer = 48 << 20, 256 << 20

	// The four constants below are the bytes that nats-server stores in addition to the body, with a target of 25
	// characters. They are from the streams' state after delaybroker pub --level 1h, pub --in 1h45m (for a hop), and
	// pub --in 5h30m --key (for an entry and a marker).
	storedRequest = 64
	storedHop     = 408
	storedEntry   = 157
	storedMarker  = 502
	// wireOverhead is the number of bytes on the wire in addition to the stored bytes of a message: the reply subject,
	// and the answer. It is computed from the protocol.
	wireOverhead = 120
)

// Duplicate windows of streams.
const (
	laneWindow   = 30 * time.Second // DELAY_DEDUP_WINDOW
	targetWindow = 2 * time.Minute  // nats-server's default for the targets' streams
)

// The maximum throughput of one stream, per second, on two cores, with one replica and with three.
var (
	// maxLane is for messages through one lane. Measured by compare --rate 200000 --for 2s --publishers 2
	// --beside pipeline --rounds 2 and, with three replicas, by NATS_URL=… compare --rate 50000 --for 2s
	// --publishers 2 --beside pipeline
	maxLane = byReplicas{53_000, 34_000}

	// maxTarget is for deliveries into one target's stream: the rate of the pipeline, the minimal broker of compare.
	// Our broker's rate was 51,000 with one replica, which is 0.57 of the pipeline's, and 43,000 with three replicas,
	// which is 0.89. Measured by compare burst --beside scheduler,pipeline --rounds 2 and, with three replicas,
	// by NATS_URL=… compare burst --count 30000 --beside scheduler,pipeline
	maxTarget = byReplicas{89_000, 48_000}

	// maxTimers is for timers. It is computed: the server executes the two deletes of a timer one after the other,
	// which takes 60 µs in a profile of compare timers --beside scheduler. With replicas, the model reduces
	// the throughput by the same factor as for a lane.
	maxTimers = byReplicas{16_000, 10_000}

	// maxRounds is for rounds of series. With replicas, the model reduces the throughput by the same factor as for a
	// lane. Measured by compare rounds --beside scheduler
	maxRounds = byReplicas{22_000, 14_000}
)

// byReplicas has the values for one replica and for several.
type byReplicas struct{ single, replicated float64 }

func (b byReplicas) of(replicas int) float64 {
	if replicas > 1 {
		return b.replicated
	}
	return b.single
}
