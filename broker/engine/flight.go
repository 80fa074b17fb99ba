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

// flight is a message in memory, from being read to having arrived elsewhere.
type flight struct {
	lane.Stored // without its header: request holds the needed part
	request     message.Request
	problem     *message.Problem // the reason why it cannot be delivered; nil if it can
	mark        lane.Mark
	size        int  // bytes accounted: see cost
	leaves      bool // it waits on the wheel to be moved
	grown       int  // the part of size that unpacking has added; zero if it was never packed

	tries   int      // publishes in a row that were not answered, or found no room
	silent  int      // deliveries in a row that a target should have answered
	refused string   // the level that refused the last hop; the next smaller level is tried
	sent    *publish // one of our streams may have stored it: it is repeated unchanged
	overdue wheel.Handle
	waits   wheel.Handle // on the wheel; see hold
	timer   *role.Alarm  // of a named timer; nil otherwise

	unproven *unproven // the seal is by an unknown key; nil otherwise
}

// unproven keeps a message as it was stored, to parse it again once more keys are known.
type unproven struct {
	incoming message.Incoming // as it was stored
	since    time.Time        // local
}

// newer reports whether a newer broker wrote the message, in a format that this one cannot read.
func (f *flight) newer() bool { return f.problem != nil && f.problem.Code == message.NewerFormat }

func (f *flight) storedAt() leader.Time { return leader.At(f.At) }

// when returns the time at which the message is to be delivered.
func (f *flight) when() leader.Time { return leader.At(f.request.When()) }

// publish is a message on its way into one of our streams. It is the same at each repetition: in another stream, or
// under another id, a copy could not be recognised. Its headers are made for each sending, and not kept: they would
// take more memory than the rest of a small message.
type publish struct {
	kind    stepKind         // hop, retry, park or dead
	level   levels.Level     // of a hop or a retry
	as      *message.Request // the message's request there; mostly the flight's own, unchanged meanwhile
	why     *message.Problem // of a dead letter
	stream  string           // the stream to store it in; only its answer counts
	subject string
	found   uint64 // the sequence of the copy that the stream reports; zero for none
	nonce   string // the random end of its id, which no other client can have used; empty until it is needed

	marker *role.Alarm // of a marker: its timer, whose body stays in the timers' stream; nil otherwise
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
