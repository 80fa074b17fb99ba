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
	lane.Stored // without headers: request has the needed ones
	request     message.Request
	problem     *message.Problem // the reason why it cannot be delivered; nil if it can
	mark        lane.Mark
	size        int  // its memory in bytes: see cost
	leaves      bool // it waits on the wheel for a hop
	grown       int  // the part of size that unpacking has added; zero if it was never packed

	tries   int          // number of consecutive failed tries: publishes without an answer or without room
	silent  int          // number of consecutive deliveries that the target should have acknowledged, and did not
	refused string       // name of the level that refused the last hop; empty if no level refused
	sent    *publish     // a publish that a stream of ours may have stored, to be repeated unchanged; nil for none
	overdue wheel.Handle // its place in flights.overdue
	waits   wheel.Handle // its place in flights.wheel
	timer   *role.Alarm  // the state of a named timer; nil for another message

	unproven *unproven // set while the key of its seal is unknown; otherwise nil
}

// unproven keeps a message as it was stored, so that it can be parsed again when more keys are known.
type unproven struct {
	incoming message.Incoming
	since    time.Time // local; when the message began to wait; zero before
}

// newer reports whether a newer broker wrote the message, in a format that this broker cannot read.
func (f *flight) newer() bool { return f.problem != nil && f.problem.Code == message.NewerFormat }

func (f *flight) storedAt() leader.Time { return leader.At(f.At) }

// when returns the time of the next attempt to deliver the message.
func (f *flight) when() leader.Time { return leader.At(f.request.NextAttempt()) }

// publish is a message that the worker publishes into one of our streams. Each repetition publishes the same message
// into the same stream under the same id, so that the stream recognises a duplicate. The worker makes the headers again
// for each repetition: kept in memory, they would be larger than the rest of a small message.
type publish struct {
	kind    stepKind         // hop, retry, park or dead
	level   levels.Level     // the destination of a hop or a retry
	as      *message.Request // the message's request there; the flight's own unless the step changes it
	why     *message.Problem // the reason of a dead letter
	stream  string           // the stream that must store it; answers of other streams are ignored
	subject string
	found   uint64 // the sequence of the duplicate that the stream reports; zero if it reports none
	nonce   string // the random end of the publish's id, which no other client can have used; empty before renew

	marker *role.Alarm // the timer of a marker, which has no body; nil for another message
}

// header returns the headers, without a seal.
func (p *publish) header() message.Header {
	var h message.Header
	switch {
	case p.kind == dead:
		h = p.as.DeadHeader(p.why)
	case p.marker != nil:
		h = p.marker.MarkerHeader(*p.as)
	default:
		h = p.as.HopHeader()
	}
	if p.nonce != "" {
		h[jetstream.MsgIDHeader] = []string{h[jetstream.MsgIDHeader][0] + p.nonce}
	}
	return h
}

// body returns the body of the publish.
func (p *publish) body(f *flight) []byte {
	if p.marker != nil {
		return nil
	}
	return f.Data
}

// renew gives the publish an id that no other client can have used.
func (p *publish) renew() {
	p.found, p.nonce = 0, p.nonce+"+"+rand.Text()
}
