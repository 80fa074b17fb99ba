package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/role"
)

// This file reads the entries of named timers. Ahead of the due time, it reads the entries of many markers in one
// request to any replica. Other entries it reads one by one from the leader.

const (
	// maxCopying is the maximum number of concurrent requests of a lane for copies of entries.
	maxCopying = 4
	// maxLooking is the maximum number of entries that a lane reads concurrently from the leader: when 10,000 requests
	// wait, JetStream drops the requests of all clients.
	maxLooking = 16
	// Thousands of markers may be due at the same time. The bodies that are read for markers use at most a lane's
	// memory divided by loadShare. The bodies for markers that are not due yet use at most half of that part.
	loadShare = 4
)

// examine reads the state of a timer when there is memory for the timer's body. If the body is already in memory,
// examine reads whether the earlier rounds are settled.
func (w *worker) examine(f *flight, m moment) {
	t := w.timers
	switch {
	case f.timer.Stage == role.Pending && t.stream.KnowsBefore(f.timer):
		w.proceed(f, m)
	case f.timer.Fresh:
		t.uncopied = append(t.uncopied, f) // the pass reads them in batches
	default:
		t.unlooked = append(t.unlooked, f)
		w.startReads()
	}
}

// load accounts the body of a timer, if there is memory for it. The bodies of markers may use the lane's memory divided
// by share.
func (w *worker) load(f *flight, share int64) (room bool) {
	t, size := w.timers, f.timer.Size
	switch {
	case f.timer.Loaded:
		return true
	case t.loaded > 0 && int64(t.loaded+size) > w.flights.account.Limit()/share:
		return false
	}
	f.timer.Loaded = true
	t.loaded += size
	w.flights.grow(f, size+size/4)
	w.charge()
	return true
}

// unload drops the body of a timer.
func (w *worker) unload(f *flight) {
	if !f.timer.Loaded {
		return
	}
	t, size := w.timers, f.timer.Size
	f.timer.Loaded, f.Data = false, nil
	t.loaded -= size
	w.flights.grow(f, -size-size/4)
	w.startReads()
}

// copied is the event that a request for the last entries of some subjects has ended.
type copied struct {
	flights []*flight
	found   map[string]message.Incoming
	err     error
}

// startCopies begins reads of copies of entries, in order, while there is memory for their bodies. If there is none, a
// timer that is not due yet is read when it is due. It returns the time after which it must be called again without an
// event.
func (w *worker) startCopies(m moment) (wait time.Duration) {
	t := w.timers
	if len(t.uncopied) == 0 {
		return forever
	}
	pause, failing := t.stream.CopiesPause(m.local)
	if failing {
		w.avoidCopies(m, pause > 0)
	}
	if pause > 0 {
		return pause
	}
	for len(t.uncopied) > 0 && t.copying < maxCopying && !w.stopped.Load() {
		batch, bytes := copied{}, 0
		var subjects []string
		for len(t.uncopied) > 0 && len(subjects) < role.MaxCopies {
			f := t.uncopied[0]
			share, ahead := int64(loadShare), f.when().After(m.now)
			if ahead {
				share *= 2
			}
			if len(subjects) > 0 && bytes+f.timer.Size > role.CopiesBytes {
				break
			}
			if !w.load(f, share) {
				if !ahead {
					break
				}
				t.uncopied = t.uncopied[1:]
				w.flights.hold(f, f.when())
				continue
			}
			t.uncopied = t.uncopied[1:]
			bytes += f.timer.Size
			batch.flights, subjects = append(batch.flights, f), append(subjects, f.timer.Subject)
		}
		if len(subjects) == 0 {
			return forever
		}
		t.copying++
		w.ask(func(ctx context.Context) event {
			batch.found, batch.err = t.stream.ReadCopies(ctx, subjects)
			return batch
		})
	}
	return forever
}

// avoidCopies handles the timers to be copied while replicas do not answer. It moves due timers to the reads from the
// leader. It moves only as many as these reads take at once: thousands of reads would take longer than a replica's next
// answer. During a pause, a timer that is not due waits until it is due.
func (w *worker) avoidCopies(m moment, paused bool) {
	t := w.timers
	for len(t.uncopied) > 0 {
		f := t.uncopied[0]
		switch ahead := f.when().After(m.now); {
		case ahead && paused:
			w.flights.hold(f, f.when())
		case ahead, len(t.unlooked)+t.looking >= maxLooking:
			return
		default:
			f.timer.AskLeader()
			w.examine(f, m)
		}
		t.uncopied = t.uncopied[1:]
	}
}

func (e copied) handle(w *worker, m moment) {
	w.flights.underway--
	w.timers.copying--
	if e.err != nil && !errors.Is(e.err, role.ErrNoCopies) {
		w.notes.Log(slog.LevelWarn, "cannot read timers ahead from the replicas of their stream; due timers are read "+
			"from the leader until replicas answer: if this lasts, check the stream's allow_direct, and the permission to "+
			"publish to DIRECT.GET",
			"err", e.err)
	}
	for _, f := range e.flights {
		in, ok := e.found[f.timer.Subject]
		switch {
		case ok:
			entry, s := w.timers.stream.Copied(f.timer, in)
			if s.Kind == role.Restart {
				w.restart(f, entry, in.Data)
			}
			w.apply(f, timerStep(m, f, s), m)
		case e.err != nil && f.when().After(m.now):
			f.timer.Fresh = false
			w.unload(f)
			w.flights.hold(f, f.when())
		default:
			f.timer.Fresh = false
			w.examine(f, m)
		}
	}
}

// restart makes a timer pending, with the content of its own entry.
func (w *worker) restart(f *flight, entry entry.Entry, body []byte) {
	hop, due := f.request.Hop, f.request.Due
	f.request, f.problem, f.Data = entry.Request, entry.Problem, body
	f.request.Hop = hop
	if entry.Debounced() && due.Before(f.request.Due) { // the marker's due time takes the start of the run into account
		f.request.Due = due
	}
	f.timer.TakeEntry(entry)
}

// startReads begins reads of entries from the leader, in order, while there is memory for their bodies.
func (w *worker) startReads() {
	t := w.timers
	for len(t.unlooked) > 0 && t.looking < maxLooking && !w.stopped.Load() {
		f := t.unlooked[0]
		before := f.timer.Stage == role.Pending // its body is in memory; the earlier rounds, or its run, are to be read
		if !before && !w.load(f, loadShare) {
			return
		}
		t.unlooked = t.unlooked[1:]
		t.looking++
		if before {
			w.lookBefore(f)
		} else {
			w.lookAt(f)
		}
	}
}
