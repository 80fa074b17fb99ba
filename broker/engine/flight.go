package engine

import (
	"crypto/rand"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
	"delaybroker/levels"
	"delaybroker/wheel"
)

// flight is a message in memory, from its read until it has arrived.
type flight struct {
	lane.Message // without headers: request has the headers that are needed later
	request      message.Request
	problem      *message.Problem // the reason why the message cannot be delivered; nil if it can be delivered
	mark         lane.Mark
	size         int  // the memory of the message, in bytes: see cost
	awaitsHop    bool // the message waits on the wheel for a hop
	growth       int  // the part of size that unpacking has added; zero if the message was never packed

	tries         int          // number of consecutive failed tries that were followed by a backoff
	silences      int          // number of consecutive deliveries that the target should have acknowledged, and did not
	refusedBy     string       // name of the level that refused the latest hop; empty if no level refused
	sent          *publish     // the latest publish into one of our streams; nil for none, and after a refusal
	overdueHandle wheel.Handle // the message's place in flights.overdue
	wheelHandle   wheel.Handle // the message's place in flights.wheel
	timer         *role.Alarm  // the state of a named timer; nil for another message
	loaded        int          // of a timer, the bytes that are reserved for its body and headers; zero for none

	openPlace int       // the message's place in flights.open, plus one; zero while no delivery is open
	handOver  *handOver // nil unless the message is handed over: see hand_over.go
	verified  bool      // see unverified

	keyWait *keyWait // set while the key of the message's seal is unknown; otherwise nil
}

// keyWait keeps a message as it was stored, so that it can be parsed again when more keys are known.
type keyWait struct {
	incoming message.Incoming
	since    time.Time // local; when the message began to wait; zero before beginKeyWait
}

// hasNewerFormat reports whether a newer broker wrote the message, in a format that this broker cannot read.
func (f *flight) hasNewerFormat() bool {
	return f.problem != nil && f.problem.Code == message.NewerFormat
}

func (f *flight) storedAt() leader.Time { return leader.At(f.At) }

// nextAttempt returns the time of the next attempt to deliver the message: the due time, or the time of a retry.
func (f *flight) nextAttempt() leader.Time { return leader.At(f.request.NextAttempt()) }

// publish is a message that the worker publishes into one of our streams. Each repetition publishes the same message
// into the same stream under the same id, so that the stream recognises a duplicate; renew changes the id. The worker
// makes the headers again for each repetition: in memory, they would take more bytes than a small message without its
// headers.
type publish struct {
	kind      stepKind         // hop, retry, park or dead
	level     levels.Level     // the destination of a hop or a retry
	request   *message.Request // the request that the stream stores; the flight's own request, unless the step changes it
	problem   *message.Problem // the reason of a dead letter
	stream    string           // the stream that must store the message; answers of other streams are ignored
	subject   string
	duplicate uint64 // the sequence of the duplicate that the stream reports; zero if it reports none
	nonce     string // the random end of the publish's id; empty before renew

	marker *role.Alarm // the timer of a marker, which has no body; nil for another message
}

// header returns the headers of the publish, without a seal.
func (p *publish) header() message.Header {
	var h message.Header
	switch {
	case p.kind == dead:
		h = p.request.DeadHeader(p.problem)
	case p.marker != nil:
		h = p.marker.MarkerHeader(*p.request)
	default:
		h = p.request.HopHeader()
	}
	if p.nonce != "" {
		h[jetstream.MsgIDHeader] = []string{h[jetstream.MsgIDHeader][0] + p.nonce}
	}
	return h
}

func (p *publish) body(f *flight) []byte {
	if p.marker != nil {
		return nil
	}
	return f.Data
}

// renew gives the publish an id that no client can have used.
func (p *publish) renew() {
	p.duplicate, p.nonce = 0, p.nonce+"+"+rand.Text()
}
