package deliver

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/reply"
)

// ackWait is how long a stream may take to acknowledge.
const ackWait = 5 * time.Second

// ErrDraining is in the result of a delivery that was never sent because the deliverer stops.
var ErrDraining = errors.New("stopping; not sent")

// Message is what is to be delivered.
type Message struct {
	Target string
	Mode   message.Mode // empty: as configured
	Header message.Header
	Data   []byte
	// Expires is when it must not be sent any more, by our clock; zero means never.
	Expires time.Time
	// Paced is the Pacer of the result that gave it the turn in which it comes.
	Paced string
	// Owner is asked before it is sent; nil lets it go in any case.
	Owner Owner
}

// Owner is whose messages are delivered. It must be comparable, and may be asked from any goroutine.
type Owner interface {
	MayDeliver() bool
}

// Outcome is what became of a delivery.
type Outcome uint8

// The outcomes.
const (
	Delivered Outcome = iota
	Refused           // the target, or the server in its place, said no
	Unknown           // it may have arrived or not; to be repeated under the same id
	Stalled           // not sent: its target has answered nothing for a while; no attempt
	NoRoom            // refused for want of room in the account or server; no attempt
	Paced             // not sent: its target's rate gives it a turn later; no attempt
	Expired           // not sent: it expired while it waited
)

// outcomes are the names of the outcomes, by which metrics tell them apart.
var outcomes = [...]string{"delivered", "refused", "unknown", "stalled", "no_room", "paced", "expired"}

// Outcomes is how many outcomes there are, from Delivered on.
const Outcomes = len(outcomes)

// String is one of a closed set.
func (o Outcome) String() string { return outcomes[o] }

// Result is an outcome with its reason.
type Result struct {
	Outcome Outcome
	Code    int       // of a refusal: see reply.Ack
	Reason  string    // for people; of what was refused
	Err     error     // of silence or an unknown outcome: of package reply, of the connection, or ErrDraining
	Turn    time.Time // when paced: when to come again, by our clock
	Pacer   string    // when paced: who says so
}

// Config says how targets are reached.
type Config struct {
	Modes        Modes
	Rates        Rates
	ReplyTimeout time.Duration // of mode request
	// Ours tells the broker's own streams, which acknowledge no delivery. Nil knows none.
	Ours func(stream string) bool
	Log  *slog.Logger
}

// Deliverer publishes to targets on one connection. It is safe for concurrent use.
type Deliverer struct {
	Config
	box     *reply.Box
	streams *streams
	pacer   string // of this deliverer alone

	mu      sync.Mutex // never held while publishing
	targets map[string]*target
	sweepAt int       // how many targets are worth a search for idle ones
	sent    int       // deliveries outstanding
	turn    []*target // those with something waiting and a share left, in the order of their turn
	pumping bool
	closed  bool
	heard   error // the connection's last error that was told us
}

// delivery is one message on its way to its target.
type delivery struct {
	Message
	target *target
	sent   time.Time
	done   func(Result)
}

// New makes a deliverer that publishes through box and looks streams up with lookup. Don't forget to Run it.
func New(box *reply.Box, lookup Lookup, cfg Config) *Deliverer {
	return &Deliverer{
		Config: cfg, box: box, streams: newStreams(lookup, cfg.Log), pacer: rand.Text()[:8], targets: make(map[string]*target),
		heard: box.LastError(),
	}
}

// Run looks streams up until ctx ends. The box is run by its owner.
func (d *Deliverer) Run(ctx context.Context) { d.streams.run(ctx) }

// Deliver sends m, now or when its target has room, and calls done exactly once, from any goroutine; done must not
// block. How much may wait is bounded by the callers, who hold the messages.
func (d *Deliverer) Deliver(m Message, done func(Result)) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		done(Result{Outcome: Unknown, Err: ErrDraining})
		return
	}
	t := d.targetLocked(m.Target)
	dl := &delivery{Message: m, target: t, done: done}
	if d.stalledLocked(t, m) {
		d.mu.Unlock()
		done(Result{Outcome: Stalled})
		return
	}
	if r, later := d.paceLocked(t, m); later {
		d.mu.Unlock()
		done(r)
		return
	}
	if d.sent < window && t.sent < share && len(t.waiting) == 0 {
		d.sentLocked(t)
		d.mu.Unlock()
		d.send(dl)
		return
	}
	t.waiting = append(t.waiting, dl)
	d.queueLocked(t)
	d.mu.Unlock()
	d.pump()
}

// Drain stops sending: what waits is given back, what was sent may still be answered.
func (d *Deliverer) Drain() {
	d.mu.Lock()
	d.closed = true
	back := d.takeBackLocked(func(*delivery) bool { return true })
	d.mu.Unlock()
	giveBack(back)
}

// Recall gives back what waits of one owner; what was sent may still be answered.
func (d *Deliverer) Recall(o Owner) {
	d.mu.Lock()
	back := d.takeBackLocked(func(dl *delivery) bool { return dl.Owner == o })
	d.mu.Unlock()
	giveBack(back)
}

// takeBackLocked takes some of what waits out of the queues.
func (d *Deliverer) takeBackLocked(which func(*delivery) bool) (back []*delivery) {
	for _, t := range d.targets {
		t.waiting = slices.DeleteFunc(t.waiting, func(dl *delivery) bool {
			taken := which(dl)
			if taken {
				back = append(back, dl)
			}
			return taken
		})
	}
	return back
}

func giveBack(unsent []*delivery) {
	for _, dl := range unsent {
		dl.done(Result{Outcome: Unknown, Err: ErrDraining})
	}
}

// send publishes one delivery, which counts as outstanding until finish.
func (d *Deliverer) send(dl *delivery) {
	switch {
	case dl.Owner != nil && !dl.Owner.MayDeliver():
		d.finish(dl, Result{Outcome: Unknown, Err: ErrDraining})
		return
	case !dl.Expires.IsZero() && time.Now().After(dl.Expires):
		d.finish(dl, Result{Outcome: Expired})
		return
	}
	dl.sent = time.Now()
	m := &nats.Msg{Subject: dl.Target, Header: dl.Header, Data: dl.Data}
	switch d.Modes.of(dl.Mode, dl.Target) {
	case message.Stream:
		d.box.Publish(m, ackWait, d.unlessForbidden(dl, d.fromStream))
	case message.Core:
		d.box.PublishCurious(m, ackWait, d.unlessForbidden(dl, d.fromCore))
	case message.Reply:
		d.box.Publish(m, d.ReplyTimeout, d.unlessForbidden(dl, d.fromService))
	default:
		publish := d.box.PublishCurious
		if d.acksLately(dl) { // its silence would say nothing, and to listen for it costs a flush
			publish = d.box.Publish
		}
		publish(m, ackWait, d.unlessForbidden(dl, d.fromEither))
	}
}

// finish gives the result and makes room for the next.
func (d *Deliverer) finish(dl *delivery, r Result) {
	t := dl.target
	d.mu.Lock()
	var back []*delivery
	switch {
	case r.Outcome == Expired, errors.Is(r.Err, ErrDraining): // nobody was asked
	case !errors.Is(r.Err, reply.ErrTimeout):
		t.answered = time.Now()
	case d.stalledLocked(t, dl.Message):
		back, t.waiting = t.waiting, nil
	}
	d.sent--
	t.sent--
	d.queueLocked(t)
	more := len(d.turn) > 0
	d.mu.Unlock()
	dl.done(r)
	for _, waiting := range back {
		waiting.done(Result{Outcome: Stalled})
	}
	if more {
		d.pump()
	}
}
