package broker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
)

// This file takes the steps of named timers that decide_timer.go has decided on, and takes in the answers to them.

const (
	// lookers is how many last entries a lane reads at once, and removers how many it deletes: JetStream drops all
	// questions of all clients when 10,000 of them wait.
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
	w.publishEntry(f.timer.subject, header, f.Data, func(a storeAnswer) { w.mail.put(claimAnswered{f, a}) })
}

// wait looks at a timer again after a while.
func (w *worker) wait(f *flight, d time.Duration) {
	f.timer.stage = stageDoubt
	now, _ := w.clock.now(time.Now())
	w.flights.hold(f, now.Add(d))
}

// publishEntry publishes on a subject of the timers' stream, and calls done with the answer, on any goroutine. An
// answer of another stream does not count.
func (w *worker) publishEntry(subject string, header message.Header, body []byte, done func(storeAnswer)) {
	w.flights.underway++
	stream := w.shared.names.TimersStream()
	m := &nats.Msg{Subject: subject, Header: nats.Header(header), Data: body}
	w.shared.write.Publish(m, appendWait, func(answer *nats.Msg, err error) (again bool) {
		a := storeAnswer{err: err}
		switch {
		case errors.Is(err, nats.ErrMaxPayload):
			a = storeAnswer{ack: jsapi.Ack{Code: jsapi.CodeTooLarge, Description: err.Error()}, local: true}
		case err == nil:
			var ok bool
			if a.ack, ok = jsapi.ParseAck(answer); !ok || a.ack.Stream != stream && (a.ack.Stream != "" || !a.ack.Refused()) {
				return true // somebody else answers on our inbox
			}
		}
		done(a)
		return false
	})
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
			if t.loaded > 0 && int64(t.loaded+size) > w.flights.account.most()/loadShare {
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
			e := w.shared.lastEntry(ctx, subject, generation)
			e.flight = f
			w.mail.put(e)
		})
	}
}

// lastEntry reads the last entry of a subject from the leader of the timers' stream. An entry that is older than the
// generation, or none, is believed only when the leader has said that its stream reaches that far, and then says so
// again.
func (i *instance) lastEntry(ctx context.Context, subject string, generation uint64) (e examined) {
	stream := i.names.TimersStream()
	m, err := i.jetstream.api.Last(ctx, stream, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence < generation {
		s, err := i.jetstream.sample(ctx, stream)
		if err != nil || !s.Quorate {
			return examined{err: cmp.Or(err, errDeposed)}
		}
		e.found.LastSeq, e.found.Created = s.LastSeq, s.Created
		if m, err = i.jetstream.api.Last(ctx, stream, subject); errors.Is(err, jetstream.ErrMsgNotFound) {
			e.found.None = true
			return e
		} else if err != nil {
			return examined{err: err}
		}
	} else if err != nil {
		return examined{err: err}
	}
	if m.Subject != subject {
		return examined{err: errDeposed}
	}
	header, undecodable := m.Header()
	e.in = message.Incoming{
		Stream: stream, Sequence: m.Sequence, At: m.Time, Subject: m.Subject, Header: message.Header(header),
		Undecodable: undecodable != nil, Data: m.Data,
	}
	e.found.Sequence, e.found.At, e.found.Entry = m.Sequence, m.Time, i.keys.policy.ParseTimer(e.in)
	return e
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
		w.shared.keys.readSince(m.now.stamp, time.Now())
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
	v, until := timer.Judge(firing, e.found, m.now.stamp, patience)
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

// remove removes the entries of a timer that is settled. Where somebody may ask what became of it, an entry that tells
// comes first.
func (w *worker) remove(f *flight) {
	t := f.timer
	if w.plan.history == 0 || t.alone || t.what == "" {
		w.timers.unremoved = append(w.timers.unremoved, f)
		w.removeOn()
		return
	}
	header := f.request.OverHeader(t.generation, t.entry, t.what)
	w.shared.keys.policy.Keys.SealMessage(t.subject, header, nil, time.Now())
	w.publishEntry(t.subject, header, nil, func(a storeAnswer) { w.mail.put(told{f, a}) })
}

// told is the event that the entry is stored which tells what became of a timer, or could not be.
type told struct {
	*flight
	storeAnswer
}

func (w *worker) told(f *flight, a storeAnswer, m moment) {
	t := f.timer
	switch {
	case a.wins(t.entry):
		t.entry, t.keep, t.what = a.ack.Sequence, true, ""
	case a.err == nil && a.ack.Code == jsapi.CodeWrongLast:
		w.apply(f, step{kind: arrive}, m) // what stands there now has the entries before it removed
		return
	case a.unclear():
		w.apply(f, repeatLater(m, f, a.err), m)
		return
	default:
		t.what = "" // there is no room to tell; what is settled must go all the same
	}
	w.remove(f)
}

// removeOn removes entries, of some timers at once.
func (w *worker) removeOn() {
	t := w.timers
	for len(t.unremoved) > 0 && t.removing < removers {
		f := t.unremoved[0]
		t.unremoved = t.unremoved[1:]
		t.removing++
		w.flights.underway++
		todo := *f.timer
		w.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
			defer cancel()
			w.mail.put(removed{f, storeAnswer{err: w.shared.removeEntries(ctx, todo)}})
		})
	}
}

// removed is the event that the entries of a timer have been removed, or could not be.
type removed struct {
	*flight
	storeAnswer
}

func (w *worker) removed(f *flight, a storeAnswer, m moment) {
	w.timers.removing--
	w.removeOn()
	w.apply(f, afterRemoval(m, f, a), m)
}

// removeEntries removes the entries of a subject up to a timer's last one, the oldest first, each after the answer for
// the one before it. After a crash, a server may have forgotten any number of the last deletes: so whatever it forgets,
// no entry stands again without those that came after it.
func (i *instance) removeEntries(ctx context.Context, t timing) error {
	stream, api := i.names.TimersStream(), i.jetstream.api
	for !t.alone {
		m, err := api.Next(ctx, stream, 1, t.subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil // the last is gone; or a leader that was deposed does not know it, and the sweep finds it
		case err != nil:
			return err
		case m.Subject != t.subject:
			return errDeposed
		case m.Sequence > t.entry || m.Sequence == t.entry && t.keep:
			return nil
		}
		if err := i.removeEntry(ctx, stream, m.Sequence); err != nil || m.Sequence == t.entry {
			return err
		}
	}
	return i.removeEntry(ctx, stream, t.entry)
}

func (i *instance) removeEntry(ctx context.Context, stream string, sequence uint64) error {
	err := i.jetstream.api.Delete(ctx, stream, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// storeCursor stores how far the timers' stream has been read, and waits for the answer. The cursor of an owner that
// has lost the lane is lower than its successor's, and costs only time.
func (w *worker) storeCursor(ctx context.Context, todo commit) error {
	subject := w.shared.names.Armed()
	body := []byte(timer.Cursor{Next: todo.upTo + 1, Created: todo.known.Created}.String())
	header := message.Header{message.HeaderFormat: {strconv.Itoa(message.Format)}}
	w.shared.keys.policy.Keys.SealMessage(subject, header, body, time.Now())
	stream, answered := w.shared.names.TimersStream(), make(chan error, 1)
	var stored uint64
	m := &nats.Msg{Subject: subject, Header: nats.Header(header), Data: body}
	w.shared.write.Publish(m, commitTimeout, func(answer *nats.Msg, err error) (again bool) {
		if err == nil {
			ack, ok := jsapi.ParseAck(answer)
			if !ok || ack.Stream != stream && !ack.Refused() {
				return true
			}
			if stored = ack.Sequence; ack.Refused() {
				err = errors.New(ack.Description)
			}
		}
		answered <- err
		return false
	})
	select {
	case err := <-answered:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return w.shared.removeEntries(ctx, timing{subject: subject, entry: stored, keep: true})
}

// readCursor reads the cursor of the timers' stream. Without a good one, reading begins with the first entry.
func (b *Broker) readCursor(ctx context.Context) timer.Cursor {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	stream, subject := b.streams.names.TimersStream(), b.streams.names.Armed()
	m, err := b.jetstream.api.Last(ctx, stream, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return timer.Cursor{}
	}
	header, bad := m.Header()
	if err == nil && bad == nil {
		in := message.Incoming{
			Stream: stream, Sequence: m.Sequence, At: m.Time, Subject: subject, Header: message.Header(header), Data: m.Data,
		}
		if c, ok := timer.ParseCursor(m.Data, m.Sequence); ok && b.streams.keys.policy.ProvenCursor(in) {
			return c
		}
	}
	b.log.Warn("the cursor of the timers cannot be read, or somebody else wrote it; reading all timers anew", "err", err)
	return timer.Cursor{}
}
