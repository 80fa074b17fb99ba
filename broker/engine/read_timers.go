package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/role"
)

// This file reads the entries of named timers. One request to any replica reads the entries of many markers, usually
// before they are due. All other entries are read one by one, from the leader.

const (
	// maxCopyReads is the maximum number of concurrent requests of a lane for the entries of markers.
	maxCopyReads = 4
	// loadShare bounds the memory for bodies of timers, because thousands of markers may be due at the same time. All
	// loaded bodies together use at most 1/loadShare of a lane's memory. A body that is read before its marker is due must
	// fit, with the bodies loaded before it, into half of that part. It must also fit into the lane's memory when all
	// waiting messages are packed again. The body of a due marker is read even if the lane's memory is used up.
	loadShare = 2
	// maxLeaderReads is the maximum number of timers that a lane reads concurrently from the leader. The lanes must not
	// send too many requests: when 10,000 requests wait, JetStream drops the requests of all clients.
	maxLeaderReads = 16
)

// load reserves the memory for the body of a timer, and reports whether there is enough. All loaded bodies together may
// use 1/share of the lane's memory, unless there is only one. A share above loadShare means that the marker is not due:
// see loadShare.
func (w *worker) load(f *flight, share int64) (room bool) {
	size := max(1, f.timer.Size)
	switch {
	case f.loaded > 0:
		return true
	case w.timers.loadedBytes > 0 && int64(w.timers.loadedBytes+size) > w.flights.account.limit()/share,
		share > loadShare && int64(w.flights.bytes-w.flights.growth+size) > w.flights.account.limit():
		return false
	}
	w.setLoaded(f, size)
	w.charge()
	return true
}

// countHeaders reserves the memory for the client's headers of a loaded timer. Their size is unknown before the timer
// is read. Each header is in memory twice: decoded, and in the array in which the body was received.
func (w *worker) countHeaders(f *flight) {
	if f.loaded == 0 {
		return
	}
	size := max(1, f.timer.Size) + headersCost(f.request.User)
	for name, values := range f.request.User {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	w.setLoaded(f, size)
}

func (w *worker) unload(f *flight) {
	if f.loaded > 0 {
		f.Data = nil
		w.setLoaded(f, 0)
	}
}

// setLoaded changes the number of bytes that are reserved for the body and the headers of a timer. Like cost, it adds a
// quarter.
func (w *worker) setLoaded(f *flight, size int) {
	old := f.loaded
	f.loaded = size
	w.timers.loadedBytes += size - old
	change := size + size/4 - old - old/4
	f.size += change
	w.flights.bytes += change
}

// copied is the event that a request for the last entries of some markers' timers has ended.
type copied struct {
	flights []*flight             // of the markers
	found   map[string]role.Event // by subject
	err     error
}

// startCopies begins requests for the entries of queued markers, in order, while there is memory for the bodies. If
// there is no memory, a timer that is not due yet is read when it is due. The caller must call startCopies again after
// each event, and at the latest when the time wait has passed.
func (w *worker) startCopies(m moment) (wait time.Duration) {
	t := w.timers
	if len(t.copyQueue) == 0 {
		return forever
	}
	backoff, failing := t.lane.CopiesBackoff(m.local)
	maxReads := maxCopyReads
	if failing {
		w.avoidCopies(m, backoff > 0)
		maxReads = 1 // one request shows whether replicas answer again
	}
	if backoff > 0 {
		return backoff
	}
	for len(t.copyQueue) > 0 && t.copyReads < maxReads && !w.stopped.Load() {
		batch, bytes := copied{}, 0
		var subjects []string
		for len(t.copyQueue) > 0 && len(subjects) < role.MaxCopies {
			f := t.copyQueue[0]
			share, due := int64(loadShare), !f.nextAttempt().After(m.now)
			if !due {
				share *= 2
			}
			if len(subjects) > 0 && bytes+f.timer.Size > role.CopiesBytes {
				break
			}
			if !w.load(f, share) {
				if due {
					break
				}
				t.copyQueue = t.copyQueue[1:]
				w.flights.packOrHold(f, f.nextAttempt(), m.now)
				continue
			}
			t.copyQueue = t.copyQueue[1:]
			bytes += f.timer.Size
			batch.flights, subjects = append(batch.flights, f), append(subjects, f.timer.Subject)
		}
		if len(subjects) == 0 {
			return forever
		}
		t.copyReads++
		w.ask(func(ctx context.Context) event {
			batch.found, batch.err = t.lane.ReadCopies(ctx, subjects)
			return batch
		})
	}
	return forever
}

// avoidCopies handles the queued markers while replicas do not answer. It reads due timers from the leader, but at most
// maxLeaderReads at a time: thousands of reads would take longer than a replica needs to answer again. During a
// backoff, a timer that is not due waits until it is due.
func (w *worker) avoidCopies(m moment, backingOff bool) {
	t := w.timers
	queue := t.copyQueue
	t.copyQueue = queue[:0]
	for _, f := range queue {
		switch due := !f.nextAttempt().After(m.now); {
		case !due && backingOff:
			w.flights.packOrHold(f, f.nextAttempt(), m.now)
		case !due, t.reads.waiting+len(t.reads.begun) >= maxLeaderReads:
			t.copyQueue = append(t.copyQueue, f)
		default:
			w.askLeader(f)
		}
	}
}

// askLeader queues a timer for a read from the leader. The next pass begins the read. Timers whose body is in memory
// come first, because others may wait for that memory.
func (w *worker) askLeader(f *flight) {
	f.timer.AskLeader()
	w.timers.reads.add(message.Tenant(f.request.Target), f, f.loaded > 0 || f.timer.HasBody())
}

func (e copied) handle(w *worker, m moment) {
	w.flights.unanswered--
	w.timers.copyReads--
	if e.err != nil && !errors.Is(e.err, role.ErrNoCopies) {
		w.limitedLog.Log(slog.LevelWarn, "cannot read timers ahead of their due times from the replicas of their stream; "+
			"due timers are read from the leader until replicas answer: if this lasts, check the stream's allow_direct, "+
			"and the permission to publish to DIRECT.GET", "err", e.err)
	}
	for _, f := range e.flights {
		event, ok := e.found[f.timer.Subject]
		switch {
		case ok:
			w.applyToTimer(f, f.timer.Handle(event, situationOf(w.plan, m, f)), m)
		case e.err != nil && f.nextAttempt().After(m.now):
			f.timer.AskLeader()
			w.unload(f)
			w.flights.packOrHold(f, f.nextAttempt(), m.now)
		default:
			w.askLeader(f)
		}
	}
}

// startReads begins reads from the leader, while there is memory for the bodies. A timer that was replaced while it
// waited is read only if its next step still needs the read.
func (w *worker) startReads(m moment) {
	load := func(f *flight) bool { return w.load(f, loadShare) }
	for !w.stopped.Load() {
		f, ok := w.timers.reads.take(load)
		if !ok {
			return
		}
		if f.timer.HasBody() {
			if s := nextStep(w.plan, m, f); s.kind != examine {
				w.timers.reads.end(f)
				w.apply(f, s, m)
				continue
			}
		}
		request := f.timer.Request(f.request.Origin().Series)
		w.ask(func(ctx context.Context) event { return timerAnswered{f, request(ctx), true} })
	}
}
