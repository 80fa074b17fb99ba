package deliver

import (
	"context"
	"slices"
	"sync"
	"time"

	"delaybroker/broker/acks"
	"delaybroker/broker/jsapi"
)

const haltPollInterval = 10 * time.Millisecond

// Deliverer publishes to targets on one connection. It is safe for concurrent use.
//
// Targets and groups have no locks of their own: the deliverer's lock guards them. The lookup does not need that lock.
type Deliverer struct {
	cfg         Config
	box         *acks.Inbox
	lookup      *lookup
	readySignal chan struct{} // capacity 1; gets a value when readyQueue has a delivery for sendWhenReady

	mu      sync.Mutex // guards the fields below; not held while publishing, nor while done is called
	targets *targets
	groups  *groups
	sending bool // a goroutine is in sendReady
	closed  bool // set by Drain: nothing is sent any more
	// isHalted reports whether deliveries to a target are halted. A nil isHalted halts no target.
	isHalted func(target string) bool

	senderRuns bool  // sendWhenReady runs
	lastError  error // of the last call of NoteError; before, the connection's last error at New
}

// New returns a deliverer that publishes through box, and lists the account's streams with api. The caller must call
// Run.
func New(box *acks.Inbox, api jsapi.Asker, cfg Config) *Deliverer {
	return &Deliverer{
		cfg: cfg, box: box, lookup: newLookup(api, cfg.Ours, cfg.Log), readySignal: make(chan struct{}, 1),
		targets:   newTargets(cfg.Limits, cfg.Counts),
		groups:    newGroups(max(cfg.Window, minWindow), max(cfg.WindowBytes, minWindowBytes)),
		lastError: box.LastError(),
	}
}

// Run lists the streams, sends waiting messages and judges the groups, until ctx ends. The caller must also run the
// inbox with which New was called.
func (d *Deliverer) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { d.lookup.run(ctx) })
	running.Go(func() { d.sendWhenReady(ctx) })
	d.watch(ctx)
	running.Wait()
}

// Deliver sends m now or when the groups of its target have room, or ends the delivery without sending m: see
// [Outcome]. It calls done exactly once, on any goroutine, possibly before Deliver returns. Done must not block. The
// messages for one target are sent in the order of the calls of Deliver.
func (d *Deliverer) Deliver(m Message, done func(Result)) {
	dl := &delivery{Message: m, done: done}
	dl.Size = max(m.Size, len(m.Data))
	d.mu.Lock()
	if r, ok := d.admitLocked(dl); !ok {
		d.mu.Unlock()
		done(r)
		return
	}
	sendNow := d.queueLocked(dl)
	d.mu.Unlock()
	if sendNow {
		d.send(dl)
	}
}

// admitLocked sets the target and the group of a delivery. Ok reports whether the delivery may be sent, now or when
// there is room. If ok is false, r is the result of the delivery.
func (d *Deliverer) admitLocked(dl *delivery) (r Result, ok bool) {
	if err := d.stoppedLocked(dl.Target); err != nil {
		return Result{Outcome: Unknown, Err: err}, false
	}
	dl.target = d.targetLocked(dl.Target)
	dl.group, dl.limit = dl.target.group, d.limitGroup(dl)
	if retryAt, stalled := d.groups.stallEnd(dl); stalled {
		return Result{Outcome: Stalled, RetryAt: retryAt}, false
	}
	return d.targets.pace(dl.target, dl.Message)
}

// stoppedLocked returns an error if nothing may be sent to a target now.
func (d *Deliverer) stoppedLocked(target string) error {
	switch {
	case d.closed:
		return ErrDraining
	case d.isHalted != nil && d.isHalted(target):
		return ErrHalted
	}
	return nil
}

// targetLocked returns a target with its present group. While the target has unsent messages that had to wait, the
// target keeps its group: through another group, the next message could overtake them.
func (d *Deliverer) targetLocked(subject string) *target {
	t, s := d.targets.target(subject), d.lookup.snapshot.Load()
	if t.group == nil || (t.snapshot != s || t.group.removed) && t.unsentDeliveries == 0 {
		stream := ""
		if ln := s.listener(subject); ln != nil {
			stream = ln.name
		}
		t.group, t.snapshot = d.groups.group(t.subject, stream), s
	}
	return t
}

// queueLocked lets a delivery pass its groups, or queues the delivery. It reports whether the caller must send the
// delivery now.
func (d *Deliverer) queueLocked(dl *delivery) (sendNow bool) {
	t := dl.target
	t.deliveries++
	passed := d.groups.pass(dl.first(), dl)
	switch {
	case passed && t.unsentDeliveries == 0:
		return true
	case passed: // the delivery must not overtake earlier deliveries to its target in readyQueue
		d.groups.readyQueue = append(d.groups.readyQueue, dl)
	default:
		d.lookup.renew() // a new stream may listen on the target
	}
	t.unsentDeliveries++
	return false
}

// Drain stops sending for good, and gives back the waiting messages. Messages already sent still get their results.
func (d *Deliverer) Drain() {
	d.mu.Lock()
	d.closed = true
	returned := d.takeBackLocked(func(*delivery) bool { return true })
	d.mu.Unlock()
	giveBack(returned, ErrDraining)
}

// Recall gives back the waiting messages of one owner.
func (d *Deliverer) Recall(o Owner) {
	d.mu.Lock()
	returned := d.takeBackLocked(func(dl *delivery) bool { return dl.Owner == o })
	d.mu.Unlock()
	giveBack(returned, ErrDraining)
	d.sendReady()
}

// Halt stops sending to the targets for which isHalted returns true, and gives back the messages that wait for these
// targets. It returns when the messages already sent to these targets have their results, or when ctx ends. The next
// call of Halt replaces isHalted. A nil isHalted halts no target. The deliverer calls isHalted under its lock, so
// isHalted must not block.
func (d *Deliverer) Halt(ctx context.Context, isHalted func(target string) bool) {
	d.mu.Lock()
	d.isHalted = isHalted
	d.targets.halt(isHalted)
	if isHalted == nil {
		d.mu.Unlock()
		return
	}
	returned := d.takeBackLocked(func(dl *delivery) bool { return isHalted(dl.Target) })
	busy := d.targets.busyTargets(isHalted)
	d.mu.Unlock()
	giveBack(returned, ErrHalted)
	d.sendReady()
	for d.unanswered(busy) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(haltPollInterval):
		}
	}
}

// NoteError must be called with each error that the connection's error handler gets. If the server refuses a publish
// because a permission is missing, it sends an error to the connection, and no answer to the publish. Without
// NoteError, the deliverer could not distinguish such a refusal from the silence of core subscribers.
func (d *Deliverer) NoteError(err error) {
	subject, _ := jsapi.RefusedSubject(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastError = err
	if t := d.targets.bySubject[subject]; t != nil {
		t.forbiddenAt = time.Now()
	}
}

func (d *Deliverer) unanswered(targets []*target) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(targets, func(t *target) bool { return t.deliveries > 0 })
}

// takeBackLocked removes and returns the waiting deliveries for which match returns true. The caller gives them back.
func (d *Deliverer) takeBackLocked(match func(*delivery) bool) []*delivery {
	returned := d.groups.takeBack(match)
	for _, dl := range returned {
		dl.target.dropUnsent()
	}
	return returned
}

func giveBack(unsent []*delivery, err error) {
	for _, dl := range unsent {
		dl.done(Result{Outcome: Unknown, Err: err})
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch judges the groups under pressure every judgeInterval, until ctx ends. It sleeps while no group is under
// pressure.
func (d *Deliverer) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.groups.pressureSignal:
		}
		for more := true; more; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(judgeInterval):
				more = d.relieve(time.Now())
			}
		}
	}
}

// relieve gives back the waiting messages whose groups will not have room soon. It reports whether any group is still
// under pressure.
func (d *Deliverer) relieve(now time.Time) (more bool) {
	d.mu.Lock()
	returned, more := d.groups.judge(now)
	for _, dl := range returned {
		dl.target.dropUnsent()
	}
	d.mu.Unlock()
	for _, dl := range returned {
		dl.done(Result{Outcome: Stalled, RetryAt: dl.retryAt})
	}
	d.sendReady()
	return more
}
