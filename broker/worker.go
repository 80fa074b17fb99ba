package broker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
	"delaybroker/wheel"
)

// lookTimeout bounds the lateness when the answer to a look is lost with its connection.
const lookTimeout = 2 * time.Second

// worker owns one lane: it reads, decides, moves on, and commits. All its fields belong to its loop, except those that
// say otherwise. Nothing in the loop waits for an answer: what is asked elsewhere comes back through the mailbox.
type worker struct {
	*engine
	lane  layout.Spec
	lease lease.Lease
	log   *slog.Logger

	reader    *lane.Reader
	committer lane.Committer
	cursor    lane.Cursor
	clock     *clock
	wheel     *wheel.Wheel[*held]
	late      *wheel.Wheel[struct{}] // when what is being moved, or waits again, should have gone
	mail      *mailbox[event]
	ping      chan struct{}  // asks whether the loop turns
	gone      chan struct{}  // closed when the loop has ended
	wg        sync.WaitGroup // the reader, and questions asked elsewhere; all end before run returns

	epoch     uint64      // of the last message read
	created   time.Time   // when its stream was
	fresh     uint64      // the epoch that began the present history
	adopted   func()      // called at each epoch; the first call counts
	last      lane.Stored // the last message read, without its body
	from      uint64      // the first sequence that the previous owner left
	backlog   backlog
	held      int // messages in memory
	heldBytes int
	account   *account // what the lane has of the instance's memory
	underway  int      // publishes not yet answered
	commit    commitState
	verifying int      // questions about duplicates underway
	doubtful  []func() // those that wait for their turn

	strangers      int // messages held whose seal is by an unknown key
	strangersBytes int

	looking bool
	relook  time.Time   // not before, after a failed look
	seen    lane.Sample // the last look
	counted time.Time   // local; when we last looked for the sake of counting
	undated bool        // something is on the wheel for want of the time, not when it is due
	early   early
	stopped atomic.Bool // nothing more is sent

	complaints map[string]complaint
	gauge      *gauge     // read by Status
	counts     *laneCount // read by Status
}

// held is a message in memory, from being read to having arrived elsewhere.
type held struct {
	lane.Stored
	request message.Request
	problem *message.Problem
	mark    lane.Mark
	size    int    // bytes accounted: see cost
	tries   int    // publishes in a row that told us nothing, or had no room
	silent  int    // deliveries that a target did not answer although it should
	below   string // the level that last refused a hop; the next smaller one is tried
	doubt   func() // repeats a publish into a lane that told us nothing
	late    wheel.Handle

	incoming message.Incoming // as it was stored, while the key of its seal is not known
	strange  time.Time        // local; since when it is not
	moves    *atomic.Uint64   // counts it when the stream it goes to has it; nil when nobody does
}

// event is what comes back to the loop.
type event func(now time.Time)

// run works the lane until ctx or the lease ends, and leaves it ready for a successor.
func (w *worker) run(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer w.account.close()
	defer w.endBacklog()
	defer w.wg.Wait()
	defer stop()
	var reader sync.WaitGroup
	reader.Go(func() { w.reader.Run(reading) })
	w.loop(ctx)
	close(w.gone)
	stop()
	reader.Wait()
	return w.drain()
}

// loop is one pass after the other, with a sleep between.
func (w *worker) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(w.pass(time.Now()))
		items := w.reader.Items()
		if !w.hungry(time.Now()) || !w.lease.Held() {
			items = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-w.lease.Done():
			return
		case <-w.lease.Beats():
		case <-w.ping:
		case <-w.mail.bell:
		case <-timer.C:
		case e := <-w.reader.Epochs():
			w.adopt(e)
		case item := <-items:
			w.readSome(item)
		}
	}
}

// pass does everything that can be done now, and returns how long nothing else can.
func (w *worker) pass(local time.Time) time.Duration {
	now, _ := w.clock.now(local)
	for _, happened := range w.mail.take() {
		happened(now)
	}
	now, fresh := w.clock.now(local)
	able := w.online() && w.lease.Held() // otherwise the connection, or a beat, wakes the loop when it is back
	if !able {
		w.holdBack()
	}
	wait, kept := w.commitSoon(local), forever
	if fresh && able {
		kept = w.send(now, local)
	}
	if next, ok := w.wheel.Next(); ok && able {
		left := next.Sub(now)
		if kept != forever && left <= 0 {
			left = kept
		}
		wait = min(wait, w.awaitDue(left, local, fresh), w.count(local))
	}
	wait = min(wait, kept)
	if resume, ok := w.resumeReading(); ok && resume.After(now) {
		wait = min(wait, resume.Sub(now))
	}
	w.report(local)
	return wait
}

// advance acts on what is due up to a time that is not after now, and reports whether there was something. It asks for each
// message whether the lane is ours: the machine may be stopped at any moment, and another may have taken over when it goes on.
func (w *worker) advance(until, now time.Time) (some bool) {
	for due, h := range w.wheel.Advance(until) {
		if !w.lease.Held() {
			w.wheel.Add(due, h)
			return false
		}
		if when := h.request.When(); h.problem == nil && due.Before(when) && !when.After(now) {
			w.wheel.Add(when, h) // it was here for another reason: see undated
			some = true
			continue
		}
		w.step(h, now)
		some = true
	}
	if !until.Before(now) {
		w.undated = false
	}
	return some
}

// awaitDue returns how long to sleep when the next message is due after the time given, and sees to it that the clock is
// fresh by then.
func (w *worker) awaitDue(left time.Duration, local time.Time, fresh bool) time.Duration {
	left = max(left, 0)
	if w.clock.suspended(local) {
		w.look()
	}
	// Before it has lapsed, or firing would wait for the answer. After a look, what is at most clockAhead away is good.
	if w.clock.age(local)+left > clockTrust-clockAhead {
		if left > clockAhead {
			return min(left-clockAhead, lookUp)
		}
		if retry := w.relook.Sub(local); retry > 0 {
			return retry
		}
		w.look()
	}
	if !fresh {
		return forever // the look's answer wakes the loop
	}
	return left
}

// lookUp is how long the loop sleeps at most while something is held: a machine that was suspended meanwhile is late by
// no more.
const lookUp = time.Minute

const forever = time.Duration(1<<63 - 1)

// look asks the stream's leader for its time.
func (w *worker) look() {
	if w.looking {
		return
	}
	w.looking = true
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		sample, err := w.sample(ctx, w.lane.Stream)
		w.mail.put(func(now time.Time) {
			w.looking = false
			if err != nil {
				w.relook = time.Now().Add(time.Second)
				w.complain(now, slog.LevelWarn, "the stream's leader does not tell its time, and nothing is delivered without; trying again", "err", err)
				return
			}
			w.looked(sample)
		})
	})
}

// looked takes in an answer of the stream's leader.
func (w *worker) looked(s lane.Sample) {
	w.clock.look(s)
	if s.Received.After(w.seen.Received) {
		w.seen = s
	}
}

// step decides and acts. What a lane may have stored already is not decided anew, but stored there again under the same
// id: elsewhere nobody could tell that it is a copy.
func (w *worker) step(h *held, now time.Time) {
	if again := h.doubt; again != nil {
		h.doubt = nil
		again()
		return
	}
	if p := h.problem; p != nil && p.Code == message.UnknownKey {
		w.stranger(h, now)
		return
	} else if p != nil && p.Code == message.NewerFormat {
		w.complain(now, slog.LevelWarn, "a message waits for a newer broker, which wrote it: run one, or wait until the upgrade is done", "sequence", h.Sequence, "reason", p.Sentence)
	}
	w.act(h, decide(w.lane, w.cfg.Ladder, h.At, h.request, h.problem, now), now)
}

func (w *worker) act(h *held, s Step, now time.Time) {
	w.date(h, s)
	switch s.Kind {
	case Hold:
		if level, far := w.spill(s.At, now); far {
			w.hop(h, w.roomy(h, level))
			return
		}
		w.wheel.Add(s.At, h)
	case Hop:
		w.hop(h, w.roomy(h, s.Level))
	case Fire:
		w.fire(h, now)
	case Dead:
		w.bury(h, s.Problem, h.request)
	}
}

// arrived lets a message go: it is stored, or delivered, elsewhere.
func (w *worker) arrived(h *held) {
	w.held--
	w.heldBytes -= h.size
	w.cursor.Done(h.mark)
	w.charge()
	w.late.Remove(h.late)
}

// date keeps account of since when a message should have left: once something is done about it, the wheel does not know
// any more. One in a retry lane, refused or parked, is late from when it was due, however often it waits. One that its
// target's rate makes wait is late from its turn.
func (w *worker) date(h *held, s Step) {
	again := h.request.Attempts > 0 || w.lane.Kind == layout.Retry
	if w.late.Remove(h.late); s.Kind == Hold && (!again || h.request.Paced != "") {
		return
	}
	since := h.request.Due
	switch {
	case since.IsZero(): // it could not be read
		since = h.At
	case !again:
		since = w.leaves(w.lane, h.At, h.request)
	}
	h.late = w.late.Add(since, struct{}{})
}
