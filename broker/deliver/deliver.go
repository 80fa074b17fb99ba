package deliver

import (
	"context"
	"slices"
	"sync"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
)

// haltPollEvery is the interval at which Halt checks whether all results are there.
const haltPollEvery = 10 * time.Millisecond

// Deliverer publishes to targets on one connection. It is safe for concurrent use.
//
// Targets and groups have no locks of their own: one delivery changes its target, its groups and the order of sending
// in one step. Lookup is safe for concurrent use by itself.
type Deliverer struct {
	cfg    Config
	box    *acks.Inbox
	lookup *lookup
	roomy  chan struct{} // one slot: a delivery that has waited may be sent

	mu      sync.Mutex // guards the fields below; not held while publishing, nor while done is called
	targets *targets
	groups  *groups
	sending bool                     // a goroutine is in sendReady
	sender  bool                     // sendWhenReady runs
	closed  bool                     // nothing is sent any more
	halted  func(target string) bool // reports whether nothing may be sent to a target; nil if none is halted
	heard   error                    // the last error that Heard was called with
}

// New makes a deliverer that publishes through box, and lists the account's streams with api. The caller must Run it.
func New(box *acks.Inbox, api jsapi.Asker, cfg Config) *Deliverer {
	if cfg.Counts == nil {
		cfg.Counts = NewCounts(cfg.Limits.ByTarget)
	}
	return &Deliverer{
		cfg: cfg, box: box, lookup: newLookup(api, cfg.Ours, cfg.Log), roomy: make(chan struct{}, 1),
		targets: newTargets(cfg.Limits, cfg.Counts), groups: newGroups(cfg.window()), heard: box.LastError(),
	}
}

// Run lists the streams, sends waiting messages and judges the groups, whenever that is needed, until ctx ends. It does
// not run the box: its owner does.
func (d *Deliverer) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { d.lookup.run(ctx) })
	running.Go(func() { d.sendWhenReady(ctx) })
	d.watch(ctx)
	running.Wait()
}

// Deliver sends m now, or when its group has room. It calls done exactly once, from any goroutine; done must not
// block. The messages for one target are sent in the order of the calls.
func (d *Deliverer) Deliver(m Message, done func(Result)) {
	dl := &delivery{Message: m, done: done}
	dl.Size = max(m.Size, len(m.Data))
	d.mu.Lock()
	if r, ok := d.admitLocked(dl); !ok {
		d.mu.Unlock()
		done(r)
		return
	}
	now := d.queueLocked(dl)
	d.mu.Unlock()
	if now {
		d.send(dl)
	}
}

// admitLocked finds the target and the group of a delivery. It reports false, and the result, for a delivery that must
// not even wait.
func (d *Deliverer) admitLocked(dl *delivery) (Result, bool) {
	if err := d.stoppedLocked(dl.Target); err != nil {
		return Result{Outcome: Unknown, Err: err}, false
	}
	dl.target = d.targetLocked(dl.Target)
	dl.group = dl.target.group
	if turn, slow := d.groups.slow(dl); slow {
		return Result{Outcome: Stalled, Turn: turn}, false
	}
	r, later := d.targets.pace(dl.target, dl.Message)
	return r, !later
}

// stoppedLocked returns the reason why nothing is sent to a target any more, or nil.
func (d *Deliverer) stoppedLocked(target string) error {
	switch {
	case d.closed:
		return ErrDraining
	case d.halted != nil && d.halted(target):
		return ErrHalted
	}
	return nil
}

// targetLocked finds a target, and the group that it belongs to now. While messages for a target wait, it stays in its
// group: in another group, the next message would overtake them.
func (d *Deliverer) targetLocked(subject string) *target {
	t, s := d.targets.of(subject), d.lookup.latest.Load()
	if t.group == nil || (t.snapshot != s || t.group.forgotten) && t.unsent == 0 {
		stream := ""
		if h := s.holder(subject); h != nil {
			stream = h.name
		}
		t.group, t.snapshot = d.groups.of(t.subject, stream), s
	}
	return t
}

// queueLocked has a delivery pass its groups. It reports true if the caller must send the delivery at once.
func (d *Deliverer) queueLocked(dl *delivery) bool {
	t := dl.target
	t.open++
	passed := d.groups.pass(dl)
	switch {
	case passed && t.unsent == 0:
		return true
	case passed: // it must not overtake the deliveries before it, which another goroutine is sending
		d.groups.ready = append(d.groups.ready, dl)
	default:
		d.lookup.renew() // the stream behind the target may be new
	}
	t.unsent++
	return false
}

// Drain stops sending. Messages that wait are given back; messages that were sent may still be answered.
func (d *Deliverer) Drain() {
	d.mu.Lock()
	d.closed = true
	back := d.takeBackLocked(func(*delivery) bool { return true })
	d.mu.Unlock()
	giveBack(back, ErrDraining)
}

// Recall gives back the waiting messages of one owner. Messages that were sent may still be answered.
func (d *Deliverer) Recall(o Owner) {
	d.mu.Lock()
	back := d.takeBackLocked(func(dl *delivery) bool { return dl.Owner == o })
	d.mu.Unlock()
	giveBack(back, ErrDraining)
	d.sendReady()
}

// Halt stops sending to the targets for which halted returns true, until it is called again. Nil halts none. It gives
// back the messages that wait for these targets. It returns when the messages already sent to them have their results,
// or ctx ends.
func (d *Deliverer) Halt(ctx context.Context, halted func(target string) bool) {
	d.mu.Lock()
	d.halted = halted
	d.targets.halt(halted)
	if halted == nil {
		d.mu.Unlock()
		return
	}
	back := d.takeBackLocked(func(dl *delivery) bool { return halted(dl.Target) })
	sent := d.targets.open(halted)
	d.mu.Unlock()
	giveBack(back, ErrHalted)
	d.sendReady()
	for d.unanswered(sent) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(haltPollEvery):
		}
	}
}

// unanswered reports whether a delivery to one of these targets has no result yet.
func (d *Deliverer) unanswered(sent []*target) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(sent, func(t *target) bool { return t.open > 0 })
}

func (d *Deliverer) takeBackLocked(which func(*delivery) bool) []*delivery {
	back := d.groups.takeBack(which)
	for _, dl := range back {
		dl.target.gone()
	}
	return back
}

func giveBack(unsent []*delivery, why error) {
	for _, dl := range unsent {
		dl.done(Result{Outcome: Unknown, Err: why})
	}
}

// watch judges the groups under pressure every judgeEvery, until ctx ends. It sleeps while there are none.
func (d *Deliverer) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.groups.crowded:
		}
		for more := true; more; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(judgeEvery):
				more = d.relieve(time.Now())
			}
		}
	}
}

// relieve gives back the waiting messages that their groups will not take soon. It reports whether any group is still
// under pressure.
func (d *Deliverer) relieve(now time.Time) (more bool) {
	d.mu.Lock()
	back, more := d.groups.judge(now)
	for _, s := range back {
		s.target.gone()
	}
	d.mu.Unlock()
	for _, s := range back {
		s.done(Result{Outcome: Stalled, Turn: s.turn})
	}
	d.sendReady()
	return more
}
