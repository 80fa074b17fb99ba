package broker

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/control"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// This file takes the steps of named timers that decide_timer.go has decided on, and takes in the answers to them.

const (
	// lookers is how many last entries a lane reads at once: JetStream drops all questions of all clients when 10,000 of
	// them wait.
	lookers = 16
	// loadShare is the part of its memory, one in so many, that a lane takes for bodies that are read when they are due:
	// thousands of markers may be due at once.
	loadShare = 4
)

// claimAnswered is the event that a firing has been stored, or has failed.
type claimAnswered struct {
	*flight
	storeAnswer
}

// claim stores that a timer fires, if it is still the last entry of its subject.
func (w *worker) claim(f *flight) {
	if w.stopped.Load() {
		return // the successor fires it
	}
	if !w.timers.take(w.shared.claims, f) {
		w.wait(f, otherFlight)
		return
	}
	header := f.request.FiredHeader(f.timer.generation, w.shared.id)
	w.shared.keys.policy.Keys.SealMessage(f.timer.subject, header, f.Data, time.Now())
	w.publishEntry(f.timer.subject, header, f.Data, func(a storeAnswer) { w.mail.Put(claimAnswered{f, a}) })
}

// wait looks at a timer again after a while.
func (w *worker) wait(f *flight, d time.Duration) {
	f.timer.stage = stageDoubt
	now, _ := w.clock.Now(time.Now())
	w.flights.hold(f, now.Add(d))
}

// publishEntry publishes on a subject of the timers' stream, and calls done with the answer, on any goroutine.
func (w *worker) publishEntry(subject string, header message.Header, body []byte, done func(storeAnswer)) {
	w.publish(w.shared.names.TimersStream(), &nats.Msg{Subject: subject, Header: nats.Header(header), Data: body}, done)
}

func (w *worker) claimAnswered(f *flight, a storeAnswer, m moment) {
	switch {
	case a.wins(f.timer.generation):
		w.won(f, a.ack.Sequence, f.request)
	case a.unclear():
		f.timer.stage = stageDoubt
	}
	w.apply(f, afterClaim(m, f, a), m)
}

// won notes that the leader has stored our firing, at a sequence. From then on the timer is a message as any other.
func (w *worker) won(f *flight, entry uint64, r message.Request) {
	if f.timer.batch != nil {
		w.shared.tally.swept.Add(1)
	}
	r.Timer = message.Timer{}
	r.Hop = max(r.Hop, f.request.Hop)
	f.request, f.tries = r, 0
	f.timer.stage, f.timer.entry = stageFired, entry
}

// examined is the event that the last entry of a timer's subject has been read.
type examined struct {
	*flight
	found timer.Found
	in    message.Incoming // as it is stored
	err   error
}

// examine reads the last entry of a timer's subject, when there is room for its body.
func (w *worker) examine(f *flight) {
	w.timers.unlooked = append(w.timers.unlooked, f)
	w.lookOn()
}

// lookOn reads the entries for which there is room, in order.
func (w *worker) lookOn() {
	t := w.timers
	for len(t.unlooked) > 0 && t.looking < lookers && !w.stopped.Load() {
		f := t.unlooked[0]
		if !f.timer.loaded {
			size := f.timer.size
			if t.loaded > 0 && int64(t.loaded+size) > w.flights.account.Most()/loadShare {
				return
			}
			f.timer.loaded = true
			t.loaded += size
			w.flights.grow(f, size+size/4)
			w.charge()
		}
		t.unlooked = t.unlooked[1:]
		t.looking++
		w.flights.underway++
		subject, generation := f.timer.subject, f.timer.generation
		w.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
			defer cancel()
			i, e := w.shared, examined{flight: f}
			e.found, e.in, e.err = control.LastEntry(ctx,
				control.Entries{API: i.jetstream.api, Policy: i.keys.policy, Sample: i.jetstream.sample}, subject, generation)
			w.mail.Put(e)
		})
	}
}

func (w *worker) examined(e examined, m moment) {
	f := e.flight
	w.timers.looking--
	w.lookOn()
	if e.err != nil {
		w.notes.Log(slog.LevelWarn, "the last entry of a timer cannot be read; trying again", "timer", f.timer.subject,
			"err", e.err)
		w.apply(f, repeatLater(m, f, e.err), m)
		return
	}
	entry := e.found.Entry
	if entry.Kind == message.UnprovenEntry {
		w.shared.keys.readSince(m.now.Stamp(), time.Now())
	}
	firing, local := f.timer.firing(w.shared.id), time.Now()
	switch behind := e.found.Behind(firing); {
	case !behind:
		f.timer.behind = time.Time{}
	case f.timer.behind.IsZero():
		f.timer.behind = local
	default:
		e.found.Lasting = local.Sub(f.timer.behind) >= timer.StaleFor
	}
	var patience time.Duration
	if entry.By != "" {
		patience = w.shared.patience(entry.By)
	}
	v, until := timer.Judge(firing, e.found, m.now.Stamp(), patience)
	if v == timer.Drop && f.timer.batch != nil && !e.found.None { // what was before the last entry should have gone
		f.timer.stage, f.timer.entry, f.timer.keep = stageSettled, e.found.Sequence, true
		w.remove(f)
		return
	}
	switch v {
	case timer.Claim:
		hop := f.request.Hop
		f.request, f.problem, f.Data, f.timer.stage = entry.Request, entry.Problem, e.in.Data, stagePending
		f.request.Hop = hop
		w.proceed(f, m) // by what the set says itself
		return
	case timer.Deliver:
		if !w.timers.take(w.shared.claims, f) {
			w.wait(f, otherFlight)
			return
		}
		f.problem, f.Data = entry.Problem, e.in.Data
		w.won(f, e.found.Sequence, entry.Request)
	}
	w.apply(f, afterExamine(m, f, v, until), m)
}
