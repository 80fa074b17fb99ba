package broker

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// This file removes the entries of timers that are settled.

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
