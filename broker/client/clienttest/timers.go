package clienttest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/client"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timetable"
)

const timerHistory = time.Minute // DELAY_TIMER_HISTORY

// An entry is the last message of a timer's subject.
type entry struct {
	message.Incoming
	until time.Time // when it is forgotten; zero while it is pending
}

// entry is what the timer has, if it has anything.
func (f *Fake) entry(subject string) (entry, bool) {
	e, ok := f.timers[subject]
	if ok && !e.until.IsZero() && !f.now.Before(e.until) {
		delete(f.timers, subject)
		return entry{}, false
	}
	return e, ok
}

// expects refuses what expects another entry to be the last.
func (f *Fake) expects(subject string, h message.Header) error {
	want := h[message.HeaderExpected]
	if len(want) == 0 {
		return nil
	}
	if e, _ := f.entry(subject); want[0] != strconv.FormatUint(e.Sequence, 10) {
		return &jetstream.APIError{Code: 400, ErrorCode: jsapi.CodeWrongLast, Description: "wrong last sequence"}
	}
	return nil
}

// set stores an entry in place of another one, which will not fire.
func (f *Fake) set(in message.Incoming) message.Entry {
	f.pending = slices.DeleteFunc(f.pending, func(r Request) bool { return r.Subject == in.Subject })
	e, stored := f.policy.ParseTimer(in), entry{Incoming: in}
	if e.Kind == message.CancelEntry {
		stored.until = f.now.Add(timerHistory)
	}
	f.timers[in.Subject] = stored
	return e
}

// fired notes what has become of a timer: it is over, or goes on with the next round. It is false for a round that was
// missed.
func (f *Fake) fired(r Request) bool {
	if _, ok := f.timers[r.Subject]; !ok {
		return true
	}
	fires, what := true, message.OutcomeDelivered
	if r.as.Recurs != nil {
		series, round := r.as.RoundOf()
		d := r.as.Recurs.Table.Decide(series, round, f.now)
		if d.Next.Number > 0 {
			f.goOn(r, d)
			return d.Fire
		}
		if fires = d.Fire; !fires {
			what = message.OutcomeMissed
		}
	}
	in := f.stored(r.Stream, r.Subject, r.as.OverHeader(r.Sequence, r.Sequence, what), nil)
	f.timers[r.Subject] = entry{Incoming: in, until: f.now.Add(timerHistory)}
	return fires
}

// goOn stores the next round of a series.
func (f *Fake) goOn(r Request, d timetable.Decision) {
	next := message.Next{
		Round: d.Next, Wait: d.Wait, Table: r.as.Recurs.Table, First: r.as.Recurs.First, Word: r.as.Word,
	}
	if d.Fire {
		next.By = "fake"
	}
	f.replace(r.Stream, r.Subject, r.as.RoundHeader(r.Sequence, next), r.Body)
}

// replace stores an entry of the broker's in place of another one.
func (f *Fake) replace(stream, subject string, header message.Header, body []byte) {
	in := f.stored(stream, subject, header, body)
	if e := f.set(in); e.Kind == message.SetEntry && e.Problem == nil {
		f.pend(in, e.Request)
	}
}

func (s store) MaxPayload() int64 { return maxPayload }

// Last reads the last entry of a timer.
func (s store) Last(_ context.Context, _, subject string) (message.Incoming, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entry(subject); ok {
		return e.Incoming, nil
	}
	return message.Incoming{}, client.ErrGone
}
