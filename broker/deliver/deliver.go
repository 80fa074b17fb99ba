package deliver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/outbox"
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
	// Size is the bytes of memory that its owner holds for it; no less than the data counts.
	Size int
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
	Stalled           // not sent: more waits for its group of targets than that takes soon; no attempt
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
	Code    int       // of a refusal: see jsapi.Ack
	Reason  string    // for people; of what was refused
	Err     error     // of silence or an unknown outcome: of package outbox, of the connection, or ErrDraining
	Turn    time.Time // when stalled or paced: when to come again, by our clock
	Pacer   string    // when paced: who says so
}

// Config says how targets are reached.
type Config struct {
	Modes        Modes
	Rates        Rates
	ReplyTimeout time.Duration // of mode request
	// Ours tells the broker's own streams, which acknowledge no delivery. Nil knows none.
	Ours func(stream string) bool
	// Window and WindowBytes bound what is outstanding, and by that what is outstanding to each group of targets. They
	// should be what a lane may hold; what is too small for a share to be worth anything is not taken at its word.
	// Default to DefaultWindow and DefaultWindowBytes.
	Window      int
	WindowBytes int
	Log         *slog.Logger
}

// Defaults of Config.
const (
	DefaultWindow      = 32 << 10
	DefaultWindowBytes = 32 << 20

	// Core subscribers count as having answered after 50 ms, so a share is a twentieth of the messages that they get in a
	// second.
	leastWindow      = 2 << 10
	leastWindowBytes = 2 << 20
)

// Deliverer publishes to targets on one connection. It is safe for concurrent use.
type Deliverer struct {
	Config
	box     *outbox.Outbox
	streams *streams
	pacer   string // of this deliverer alone

	mu           sync.Mutex // never held while publishing
	targets      map[string]*target
	groups       map[groupName]*group
	window       *group
	sweepTargets int         // how many targets are worth a search for idle ones
	sweepGroups  int         // likewise
	pressed      []*group    // those with a pressure
	ready        []*delivery // passed all groups, and not yet sent
	pumping      bool
	closed       bool
	heard        error // the connection's last error that was told us

	press chan struct{} // one slot: pressed is no longer empty
}

// delivery is one message on its way to its target.
type delivery struct {
	Message
	target  *target
	group   *group    // through which it goes
	at      *group    // where it waits; nil once it has passed all
	sent    time.Time // when it was published
	ignored string    // the stream that answered in a service's place, if it was one; see fromService
	done    func(Result)
}

// New makes a deliverer that publishes through box and lists the account's streams with api. Don't forget to Run it.
func New(box *outbox.Outbox, api API, cfg Config) *Deliverer {
	cfg.Window = max(cmp.Or(cfg.Window, DefaultWindow), leastWindow)
	cfg.WindowBytes = max(cmp.Or(cfg.WindowBytes, DefaultWindowBytes), leastWindowBytes)
	return &Deliverer{
		Config: cfg, box: box, streams: newStreams(api, cfg.Ours, cfg.Log), pacer: rand.Text()[:8],
		targets: make(map[string]*target), groups: make(map[groupName]*group),
		window: &group{share: windowShare, most: cfg.Window, mostBytes: cfg.WindowBytes}, press: make(chan struct{}, 1), heard: box.LastError(),
	}
}

// Run lists streams and judges groups, where either is called for, until ctx ends. The box is run by its owner.
func (d *Deliverer) Run(ctx context.Context) {
	var listing sync.WaitGroup
	listing.Go(func() { d.streams.run(ctx) })
	listing.Go(func() { d.streams.blanks.run(ctx, d.streams) })
	d.watch(ctx)
	listing.Wait()
}

// Deliver sends m, now or when its group has room, and calls done exactly once, from any goroutine; done must not
// block. What is sent of one target is sent in the order of the calls.
func (d *Deliverer) Deliver(m Message, done func(Result)) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		done(Result{Outcome: Unknown, Err: ErrDraining})
		return
	}
	m.Size = max(m.Size, len(m.Data))
	t := d.targetLocked(m.Target)
	dl := &delivery{Message: m, target: t, group: t.group, done: done}
	if turn, slow := d.slowLocked(dl); slow {
		d.mu.Unlock()
		done(Result{Outcome: Stalled, Turn: turn})
		return
	}
	if r, later := d.paceLocked(t, m); later {
		d.mu.Unlock()
		done(r)
		return
	}
	t.open++
	passed, behind := d.passLocked(dl, dl.group), t.unsent > 0
	if passed && behind {
		d.ready = append(d.ready, dl) // it must not overtake what is there; whoever put that there pumps
	}
	if !passed || behind {
		t.unsent++
	}
	d.mu.Unlock()
	if passed && !behind {
		d.send(dl)
	}
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
	d.pump()
}

func giveBack(unsent []*delivery) {
	for _, dl := range unsent {
		dl.done(Result{Outcome: Unknown, Err: ErrDraining})
	}
}

// pump sends what passed all groups after it had waited. One goroutine pumps at a time; another that has made room
// meanwhile leaves it to that one.
func (d *Deliverer) pump() {
	d.mu.Lock()
	if d.pumping {
		d.mu.Unlock()
		return
	}
	d.pumping = true
	for len(d.ready) > 0 {
		dl := d.ready[0]
		d.ready[0] = nil
		d.ready = d.ready[1:]
		closed := d.closed
		d.mu.Unlock()
		if closed {
			d.finish(dl, Result{Outcome: Unknown, Err: ErrDraining})
		} else {
			d.send(dl)
		}
		d.mu.Lock()
		dl.target.unsent--
	}
	d.pumping = false
	d.mu.Unlock()
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
		d.box.PublishListening(m, ackWait, d.unlessForbidden(dl, d.fromCore))
	case message.Reply:
		d.box.Publish(m, d.ReplyTimeout, d.unlessForbidden(dl, d.fromService))
	default:
		publish := d.box.PublishListening
		if d.shouldAck(dl) { // its silence would say nothing, and to listen for it costs a flush
			publish = d.box.Publish
		}
		publish(m, ackWait, d.unlessForbidden(dl, d.fromEither))
	}
}

// finish gives the result and makes room for the next.
func (d *Deliverer) finish(dl *delivery, r Result) {
	d.mu.Lock()
	asked := r.Outcome != Expired && !errors.Is(r.Err, ErrDraining)
	if asked && !errors.Is(r.Err, outbox.ErrTimeout) {
		d.answeredLocked(dl)
	}
	d.leaveLocked(dl)
	more := len(d.ready) > 0
	d.mu.Unlock()
	dl.done(r)
	if more {
		d.pump()
	}
}
