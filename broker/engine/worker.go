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
	// maxItems is the maximum number of messages that the loop reads between two passes.
	maxItems = 256

	// answerWindow is the length of a sleep that an answer need not end, if nothing waits for the answer.
	answerWindow = 10 * time.Millisecond

	// closingPoll is the maximum interval between two checks of the messages that wait for the end of a closing pause.
	closingPoll = 20 * time.Millisecond

	forever = time.Duration(1<<63 - 1)
)

// worker works one lane: it reads messages, decides about them, moves or delivers them, and commits. Only the worker's
// loop uses the fields, except where a comment says otherwise. Other goroutines may call lease.Held and mail.Put. The
// loop waits for no answer: answers come back through the mailbox.
type worker struct {
	engine     *Engine
	lane       streams.Spec
	plan       plan
	lease      lease.Lease
	log        *slog.Logger
	limitedLog *ratelog.Logger // for log lines that thousands of events may cause

	reading *reading
	flights *flights
	backlog *backlog
	timers  *timers
	commits *committer
	clock   *leaderClock
	parking parking

	obstacles obstacles // safe for concurrent use; Engine.Lanes reads it

	meters
	loop
}

// meters measure a worker's work.
type meters struct {
	earlyCheck stats.EarlyCheck
	gauge      *stats.Gauge      // safe for concurrent use; Engine.Lanes reads it
	counts     *stats.LaneCounts // safe for concurrent use; Engine.Lanes reads it
	lastReport stats.Report      // of the method report
}

// loop holds the parts that a worker's loop needs to wait, wake up and end.
type loop struct {
	mail       *mailbox[event]
	loopCtx    context.Context // set by run; ends with the loop
	sleepTimer *time.Timer     // set by run; ends a sleep
	ping       chan struct{}   // Engine.Alive sends to it, to check that the loop responds
	ended      chan struct{}   // closed when the loop has ended, before drain
	wg         sync.WaitGroup  // the goroutines of requests and sweep passes; all end before run or awaitLate returns
	onEpoch    func()          // called at the beginning of each epoch: see lane.Epoch
	// answersUntil is the time until which the worker waits for answers. It is set by drain.
	answersUntil time.Time
	stopped      atomic.Bool // set by drain: the worker fires no message, and reads and claims no timer
	cooldown     cooldown
}

// event is a value of the mailbox, such as an answer. The loop handles it.
type event interface{ handle(*worker, moment) }

type (
	woken       struct{} // wakes the loop
	reconnected struct{} // a lost connection is restored
)

func (woken) handle(*worker, moment) {}

// handle permits another request for the leader's time immediately, even if the last request has just failed.
func (reconnected) handle(w *worker, _ moment) { w.clock.retryAt = time.Time{} }

// newWorker returns a worker for a lane. This instance holds the lease. From is the cursor at which reading begins.
// The caller must call run.
func (e *Engine) newWorker(l streams.Spec, kind laneKind, held lease.Lease, from lease.Cursor) *worker {
	source, clock, log := kind.source(), newLeaderClock(time.Now()), e.log.With("stream", l.Stream)
	room := e.budget.Open(source.share)
	reader := lane.NewReader(lane.ReaderConfig{
		Conn: e.Read, JetStream: e.Reading, APIPrefix: e.Settings.APIPrefix, Inbox: link.Inbox(e.Read),
		Stream: l.Stream, Filter: source.filter, Delay: l.Delay, From: from.Next,
		FromCreated: from.Created, Buffer: e.budget.buffer, Log: e.log, Sparse: kind.holdsTimers(),
		BatchWindow: readerBatchWindow(l, e.Settings),
	})
	w := &worker{
		engine: e, lane: l, plan: plan{Config: &e.Settings, kind: kind, delay: l.Delay}, lease: held,
		log: log, limitedLog: ratelog.New(log),
		reading: newReading(reader, l.Delay, source.cursor, from.Next), flights: newFlights(room), clock: clock,
		commits: newCommitter(l.Stream, kind, e.JetStream.API, e.JetStream.Sample), timers: newTimers(e.Timers.Lane()),
		meters: meters{gauge: stats.NewGauge(clock.Base()), counts: e.roster.countOf(l)},
		loop:   loop{mail: newMailbox[event](), ping: make(chan struct{}), ended: make(chan struct{}), onEpoch: func() {}},
	}
	w.flights.packsTimers = !kind.holdsTimers()
	w.timers.lane.MaxSize = int(l.MaxMsgSize)
	room.wake = w.wake
	w.backlog = newBacklog(&e.watermark, w.wake)
	return w
}

// wake wakes the loop. It is safe for concurrent use.
func (w *worker) wake() { w.mail.Put(woken{}) }

// work calls run, and then waits in the background for the answers that came too late: see hand_over.go.
func (w *worker) work(ctx context.Context) error {
	err := w.run(ctx)
	if w.flights.late > 0 {
		w.engine.lateAnswers.Go(w.awaitLate)
	}
	return err
}

// run works the lane until ctx or the lease ends, and then prepares the lane for the next active instance.
func (w *worker) run(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	w.loopCtx = working
	defer w.flights.account.Close()
	defer w.backlog.end()
	defer w.timers.lane.Close()
	defer w.wg.Wait()
	defer stop()
	var reader sync.WaitGroup
	reader.Go(func() { w.reading.Run(working) })
	w.sleepTimer = time.NewTimer(0)
	defer w.sleepTimer.Stop()
	for w.await(ctx.Done(), w.lease.Done(), w.pass(time.Now())) {
	}
	close(w.ended)
	stop()
	reader.Wait()
	return w.drain()
}

// await sleeps for at most the given time, until an event comes or the reader hands over messages. It reads these
// messages. While the lane must not be read, await ignores messages. In a cooldown, it ignores the mailbox, unless
// mustHandleAnswers. It returns false if ended or lost is closed.
func (w *worker) await(ended, lost <-chan struct{}, sleep time.Duration) bool {
	now := time.Now()
	items, epochs, signal := w.reading.Items(), w.reading.Epochs(), w.mail.Signal()
	if w.stopped.Load() {
		items, epochs = nil, nil
	} else if !w.wantsMore(now) || !w.lease.Held() {
		items = nil
	} else if w.plan.kind.yields(now) {
		items, sleep = nil, min(sleep, yieldPoll)
	}
	if cooldown := w.cooldown.until.Sub(now); cooldown > 0 && !w.mustHandleAnswers() {
		signal, sleep = nil, min(sleep, cooldown)
	}
	w.mail.takesSoon(sleep <= answerWindow && !w.mustHandleAnswers())
	w.sleepTimer.Reset(sleep)
	select {
	case <-ended:
		return false
	case <-lost:
		return false
	case <-w.ping: // receiving proves to Engine.Alive that the loop is alive
	case <-signal:
	case <-w.sleepTimer.C:
	case e := <-epochs:
		w.adopt(e)
	case item := <-items:
		w.readSome(item)
	}
	return true
}

// pass does all work that is possible now. It returns the time for which the loop may sleep if no event comes.
func (w *worker) pass(local time.Time) time.Duration {
	w.takeMail(local)
	m := w.moment(local)
	canSend := w.engine.Links.Online() && w.lease.Held() // when canSend becomes true, an event wakes the loop
	if !canSend {
		w.backlog.holdBack()
	}
	wait, sendWait := w.commitIfDue(local), forever
	if m.proven && canSend {
		w.decideUntimed(m)
		w.decideClosing(m)
		sendWait = w.send(m)
	}
	wait = min(wait, w.startCopies(m)) // before nextDue, because startCopies may put timers back on the wheel
	w.startReads(m)
	w.charge() // packing has freed memory
	if next, ok := w.nextDue(m.now); ok && canSend {
		remaining := slackEnd(next, w.slack()).Sub(m.now)
		if sendWait != forever && remaining <= 0 {
			remaining = sendWait
		}
		wait = min(wait, w.awaitDue(remaining, m))
	}
	wait = min(wait, sendWait)
	if resume, ok := w.resumeTime(); ok && resume.After(m.now) {
		wait = min(wait, resume.Sub(m.now))
	}
	if canSend {
		wait = min(wait, w.plan.kind.poll(w, m))
		w.startSettlements(m)
		if retry, ok := w.timers.retries.Next(); ok {
			wait = min(wait, leader.At(retry).Sub(m.now))
		}
	}
	w.report(local)
	w.startCooldown(m)
	return wait
}

// moment returns the situation at a local time.
func (w *worker) moment(local time.Time) moment {
	now, proven := w.clock.Now(local)
	return moment{
		now: now, local: local, proven: proven, inMemory: w.flights.count,
		crowded: w.flights.count > w.engine.Settings.HoldMessages || w.flights.account.halfUsed(),
		pauses:  w.engine.Pauses.ListAt(local), canPark: w.parking.accepts(local),
	}
}

func (w *worker) takeMail(local time.Time) {
	events := w.mail.take()
	if len(events) == 0 {
		return
	}
	m := w.moment(local)
	for _, e := range events {
		w.cooldown.worked = true
		e.handle(w, m)
	}
}

// decideUntimed decides about the messages that were read while the leader's time was not proven, or the lease was not
// held. It puts the due messages on the wheel, which orders them.
func (w *worker) decideUntimed(m moment) {
	w.empty(&w.flights.untimed, func(f *flight) {
		if attempt := f.nextAttempt(); f.problem == nil && !attempt.After(m.now) {
			w.flights.hold(f, attempt)
		} else {
			w.proceed(f, m)
		}
	})
}

// decideClosing decides about the messages that wait for the end of a closing pause. The loop calls decideClosing
// before send, so that these messages are sent before messages that become due later.
func (w *worker) decideClosing(m moment) {
	w.empty(&w.flights.closing, func(f *flight) { w.proceed(f, m) })
}

// empty removes the messages from a queue, and calls decide with each, which may queue it again. If the lease is lost,
// the other messages stay in the queue.
func (w *worker) empty(queue *[]*flight, decide func(*flight)) {
	all := *queue
	*queue = nil
	for i, f := range all {
		if !w.lease.Held() {
			*queue = append(*queue, all[i:]...)
			return
		}
		decide(f)
	}
}

// send carries out the next steps of the due messages, as far as the backlog permits. It returns the time until the
// backlog may permit more messages, if no event comes earlier.
func (w *worker) send(m moment) time.Duration {
	for {
		full := w.backlog.open && w.full()
		until, wait := w.backlog.sendable(w.reading, w.flights, full, m.now, m.local)
		if !w.backlog.open {
			until = slackBegin(m.now, w.slack())
		}
		if sent := w.advance(until, m); !sent || !w.backlog.open {
			return wait
		}
		w.backlog.recordSend()
	}
}

// advance carries out the next steps of the messages that are due at until or earlier. Until must not be later than
// now. Sent is false if advance takes no message off the wheel, or if the lease is lost. Advance checks the lease
// before each message: the machine may be suspended at any moment, and another instance may be active when the
// machine resumes.
func (w *worker) advance(until leader.Time, m moment) (sent bool) {
	for due, f := range w.flights.takeDue(until) {
		w.charge()
		if !w.lease.Held() {
			w.flights.hold(f, due)
			return false
		}
		sent, w.cooldown.worked = true, true
		if attempt := f.nextAttempt(); f.problem == nil && due.Before(attempt) && !attempt.After(m.now) {
			w.flights.hold(f, attempt) // f waited for a hop, but is due by now: f is sent in the order of due times
			continue
		}
		w.proceed(f, m)
	}
	return sent
}

// nextDue returns the time of the loop's next action on a message. While messages are in flights.untimed, nextDue
// returns now.
func (w *worker) nextDue(now leader.Time) (leader.Time, bool) {
	if len(w.flights.untimed) > 0 {
		return now, true
	}
	next, ok := w.flights.wakeTime()
	if poll := now.Add(closingPoll); len(w.flights.closing) > 0 && (!ok || poll.Before(next)) {
		return poll, true
	}
	return next, ok
}
