package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/lease"
	"delaybroker/broker/link"
	"delaybroker/broker/ratelog"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

const (
	// maxItems is the maximum number of messages that the loop reads before a pass.
	maxItems = 256

	// haltPoll is the interval at which messages that wait for the end of a pause are checked.
	haltPoll = 20 * time.Millisecond

	forever = time.Duration(1<<63 - 1)
)

// worker works one lane: it reads messages, decides about them, moves or delivers them, and commits. Only its loop uses
// the fields, except where a comment says otherwise. The loop waits for no answer: answers come back through the
// mailbox.
type worker struct {
	engine *Engine
	lane   streams.Spec
	plan   plan
	lease  lease.Lease
	log    *slog.Logger
	notes  *ratelog.Logger // for log lines that thousands of events may cause

	reading *reading
	flights *flights
	backlog *backlog
	timers  *timers
	commits *committer
	clock   *leaderClock
	parking parking

	meters
	loop
}

// meters measure a worker's work.
type meters struct {
	early  stats.EarlyCheck
	gauge  *stats.Gauge      // safe for concurrent use; Engine.Lanes reads it
	counts *stats.LaneCounts // safe for concurrent use; Engine.Lanes reads it
}

// loop holds the parts that a worker's loop needs to wait, wake up and end.
type loop struct {
	mail    *mailbox[event]
	working context.Context // set by run; ends with the loop
	timer   *time.Timer     // set by run; ends a sleep
	ping    chan struct{}   // Engine.Alive sends to it, to check that the loop turns
	gone    chan struct{}   // closed when the loop has ended
	wg      sync.WaitGroup  // requests on other goroutines; all end before run returns
	adopted func()          // called at the beginning of each epoch
	stopped atomic.Bool     // set when the worker must send no further message
	rest    rest
}

// event is an answer, or a call, that the loop handles.
type event interface{ handle(*worker, moment) }

type (
	woken    struct{} // makes the loop turn
	linkBack struct{} // a lost connection is restored
)

func (woken) handle(*worker, moment) {}

// handle permits the next look immediately, although the last one failed.
func (linkBack) handle(w *worker, _ moment) { w.clock.retry = time.Time{} }

// newWorker returns a worker for a lane that this instance owns. From is the cursor at which reading begins. The caller
// must call run.
func (e *Engine) newWorker(l streams.Spec, kind laneKind, by lease.Lease, from lease.Cursor) *worker {
	source, clock, log := kind.source(), newLeaderClock(time.Now()), e.log.With("stream", l.Stream)
	room := e.room.Open(source.share)
	reader := lane.NewReader(lane.ReaderConfig{
		Conn: e.Read, JetStream: e.Reading, APIPrefix: e.Settings.APIPrefix, Inbox: link.Inbox(e.Read),
		Stream: l.Stream, Filter: source.filter, Delay: l.Delay, From: from.Next,
		FromCreated: from.Created, Buffer: e.room.Buffer(), Log: e.log, Sparse: source.sparse,
		Collect: collects(l, e.Settings),
	})
	w := &worker{
		engine: e, lane: l, plan: planOf(e.Settings, kind, l.Delay), lease: by, log: log, notes: ratelog.New(log),
		reading: newReading(reader, l.Delay, source.cursor, from.Next), flights: newFlights(room), clock: clock,
		commits: newCommitter(l.Stream, kind, e.JetStream.API, e.JetStream.Sample), timers: newTimers(e.Timers),
		meters: meters{gauge: stats.NewGauge(clock.Base()), counts: e.roster.countOf(l)},
		loop:   loop{mail: newMailbox[event](), ping: make(chan struct{}), gone: make(chan struct{}), adopted: func() {}},
	}
	room.OnRoom(w.wake)
	w.backlog = newBacklog(&e.order, w.wake)
	return w
}

// wake makes the loop turn. It is safe for concurrent use.
func (w *worker) wake() { w.mail.Put(woken{}) }

// run works the lane until ctx or the lease ends, and then prepares the lane for its next owner.
func (w *worker) run(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	w.working = working
	defer w.flights.account.Close()
	defer w.backlog.end()
	defer w.timers.release()
	defer w.wg.Wait()
	defer stop()
	var reader sync.WaitGroup
	reader.Go(func() { w.reading.Run(working) })
	w.timer = time.NewTimer(0)
	defer w.timer.Stop()
	for w.await(ctx.Done(), w.lease.Done(), w.pass(time.Now())) {
	}
	close(w.gone)
	stop()
	reader.Wait()
	return w.drain()
}

// await sleeps until an event comes, for at most the given time. It also reads messages, unless the worker is stopped.
// It returns false when ended or lost is closed.
func (w *worker) await(ended, lost <-chan struct{}, sleep time.Duration) bool {
	now := time.Now()
	items, epochs, bell := w.reading.Items(), w.reading.Epochs(), w.mail.Signal()
	if w.stopped.Load() {
		items, epochs = nil, nil
	} else if !w.wantsMore(now) || !w.lease.Held() {
		items = nil
	} else if w.plan.kind.yields(now) {
		items, sleep = nil, min(sleep, yieldPoll)
	}
	if left := w.rest.until.Sub(now); left > 0 && !w.restless() {
		bell, sleep = nil, min(sleep, left)
	}
	w.timer.Reset(sleep)
	select {
	case <-ended:
		return false
	case <-lost:
		return false
	case <-w.lease.Beats(): // receiving proves to the lease that the loop is alive
	case <-w.ping: // receiving proves to Engine.Alive that the loop is alive
	case <-bell:
	case <-w.timer.C:
	case e := <-epochs:
		w.adopt(e)
	case item := <-items:
		w.readSome(item)
	}
	return true
}

// pass does all work that is possible now, and returns the time to sleep unless an event comes.
func (w *worker) pass(local time.Time) time.Duration {
	w.takeMail(local)
	m := w.moment(local)
	able := w.engine.Links.Online() && w.lease.Held() // an event wakes the loop when able becomes true
	if !able {
		w.backlog.holdBack()
	}
	wait, kept := w.commitIfDue(local), forever
	if m.proven && able {
		w.decideUntimed(m)
		w.decideHalted(m)
		kept = w.send(m, local)
	}
	if next, ok := w.nextDue(m.now); ok && able {
		left := slackEnd(next, w.slack()).Sub(m.now)
		if kept != forever && left <= 0 {
			left = kept
		}
		wait = min(wait, w.awaitDue(left, local, m.proven))
	}
	wait = min(wait, kept)
	if resume, ok := w.resumes(); ok && resume.After(m.now) {
		wait = min(wait, resume.Sub(m.now))
	}
	w.startCopies(m)
	if able {
		wait = min(wait, w.plan.kind.idle(w, m))
		w.startSettlements(m, local)
		if next, ok := w.timers.nextRepeat(); ok {
			wait = min(wait, next.Sub(m.now))
		}
	}
	w.report(local)
	w.restAfterPass(m)
	return wait
}

// moment returns the situation at a local time.
func (w *worker) moment(local time.Time) moment {
	now, proven := w.clock.Now(local)
	return moment{
		now: now, local: local, proven: proven, inFlight: w.flights.count,
		crowded: w.flights.count > w.engine.Settings.HoldMessages || w.flights.account.Half(),
		pauses:  w.engine.Pauses.ListAt(local), parks: w.parking.able(local), works: w.engine.works,
	}
}

// takeMail handles the events of the mailbox.
func (w *worker) takeMail(local time.Time) {
	m := w.moment(local)
	for _, e := range w.mail.Take() {
		w.rest.worked = true
		e.handle(w, m)
	}
}

// decideUntimed decides about the messages that were read while the leader's time was unknown. It puts due messages on
// the wheel, which orders them.
func (w *worker) decideUntimed(m moment) {
	waited := w.flights.untimed
	w.flights.untimed = nil
	for i, f := range waited {
		if !w.lease.Held() {
			w.flights.untimed = waited[i:]
			return
		}
		if when := f.when(); f.problem == nil && !when.After(m.now) {
			w.flights.hold(f, when)
		} else {
			w.proceed(f, m)
		}
	}
}

// decideHalted decides about the messages that wait for the end of a closing pause. It runs before later due messages
// are sent.
func (w *worker) decideHalted(m moment) {
	waited := w.flights.halted
	w.flights.halted = nil
	for i, f := range waited {
		if !w.lease.Held() {
			w.flights.halted = append(w.flights.halted, waited[i:]...)
			return
		}
		w.proceed(f, m)
	}
}

// send carries out the next steps of the due messages, as far as the backlog permits. It returns the maximum time for
// which the backlog holds messages back.
func (w *worker) send(m moment, local time.Time) time.Duration {
	for {
		full := w.backlog.open && w.full()
		until, wait := w.backlog.sendable(w.reading, w.flights, full, m.now, local)
		if !w.backlog.open {
			until = slackBegin(m.now, w.slack())
		}
		if sent := w.advance(until, m); !sent || !w.backlog.open {
			return wait
		}
		w.backlog.sent()
	}
}

// advance carries out the next steps of the messages that are due up to a time that is not after now. It reports
// whether there were any. It checks the lease before each message: the machine may be suspended at any moment, and
// another instance may own the lane when it resumes.
func (w *worker) advance(until leader.Time, m moment) (some bool) {
	for due, f := range w.flights.due(until) {
		w.charge()
		if !w.lease.Held() {
			w.flights.hold(f, due)
			return false
		}
		some, w.rest.worked = true, true
		if when := f.when(); f.problem == nil && due.Before(when) && !when.After(m.now) {
			w.flights.hold(f, when) // f waited for a hop, but is due by now: f is sent in the order of due times
			continue
		}
		w.proceed(f, m)
	}
	return some
}

// nextDue returns the time at which the loop must act on a message next. That is now while messages wait for the
// leader's time.
func (w *worker) nextDue(now leader.Time) (leader.Time, bool) {
	if len(w.flights.untimed) > 0 {
		return now, true
	}
	next, any := w.flights.wakes()
	if soon := now.Add(haltPoll); len(w.flights.halted) > 0 && (!any || soon.Before(next)) {
		return soon, true
	}
	return next, any
}
