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
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/timetable"
)

const timerHistory = time.Minute // the default of DELAY_TIMER_HISTORY

// A storedEntry is the last message of a timer's subject.
type storedEntry struct {
	message.Incoming
	removalTime time.Time // time of the entry's removal; zero if the timer has not ended
	runStart    time.Time // time of the first set of a run: see client.Debounce; zero for other timers
}

// lastEntry returns the last entry of a timer. Ok is false if the timer has no entry.
func (f *Fake) lastEntry(subject string) (storedEntry, bool) {
	e, ok := f.timers[subject]
	if ok && !e.removalTime.IsZero() && !f.now.Before(e.removalTime) {
		delete(f.timers, subject)
		return storedEntry{}, false
	}
	return e, ok
}

// checkExpected returns an error if the last entry of the subject does not have the sequence that the header expects.
func (f *Fake) checkExpected(subject string, h message.Header) error {
	want := h[message.HeaderExpected]
	if len(want) == 0 {
		return nil
	}
	if e, _ := f.lastEntry(subject); want[0] != strconv.FormatUint(e.Sequence, 10) {
		return &jetstream.APIError{Code: 400, ErrorCode: jsapi.CodeWrongLast, Description: "wrong last sequence"}
	}
	return nil
}

// setLast makes an entry the only entry of its subject. The entry that it replaces will not fire.
func (f *Fake) setLast(in message.Incoming) entry.Entry {
	messages := f.stream(in.Stream).messages
	delete(messages, f.timers[in.Subject].Sequence)
	messages[in.Sequence] = in
	f.pending = slices.DeleteFunc(f.pending, func(r Request) bool { return r.Subject == in.Subject })
	e, stored := entry.Parse(f.policy, in), storedEntry{Incoming: in}
	if e.Kind == entry.Cancel {
		stored.removalTime = f.now.Add(timerHistory)
	}
	if e.Debounced() {
		lastEntry, _ := f.lastEntry(in.Subject)
		if stored.runStart = lastEntry.runStart; lastEntry.runStart.IsZero() {
			stored.runStart = in.At
		}
	}
	f.timers[in.Subject] = stored
	return e
}

// fire stores the result of a due timer: the end of the timer, or the next round. It returns false for a missed round
// that does not fire, and otherwise true. For a message without a timer, fire stores nothing.
func (f *Fake) fire(r Request) bool {
	if _, ok := f.timers[r.Subject]; !ok {
		return true
	}
	fires, outcome := true, entry.Delivered
	if r.parsed.Series != nil {
		series, round := r.parsed.Round()
		d := r.parsed.Series.Table.Decide(series, round, f.now)
		if d.Next.Number > 0 {
			f.nextRound(r, d)
			return d.Fire
		}
		if fires = d.Fire; !fires {
			outcome = entry.Missed
		}
	}
	in := f.newMessage(r.Stream, r.Subject, r.parsed.OverHeader(r.Sequence, r.Sequence, outcome), nil)
	f.timers[r.Subject] = storedEntry{Incoming: in, removalTime: f.now.Add(timerHistory)}
	return fires
}

func (f *Fake) nextRound(r Request, d timetable.Decision) {
	next := entry.Next{
		Round: d.Next, Wait: d.Wait, Table: r.parsed.Series.Table, First: r.parsed.Series.First, Token: r.parsed.Token,
	}
	if d.Fire {
		next.Instance = "fake"
	}
	f.replace(r.Stream, r.Subject, r.parsed.RoundHeader(r.Sequence, next), r.Body)
}

// replace stores an entry that the broker would write, such as the next round of a series, as the last entry of a
// subject.
func (f *Fake) replace(stream, subject string, header message.Header, body []byte) {
	in := f.newMessage(stream, subject, header, body)
	if e := f.setLast(in); e.Kind == entry.Set && e.Problem == nil {
		f.addPending(in, e.Pending)
	}
}

func (s store) MaxPayload() int64 { return maxPayload }

// ReadLast reads the last entry of a timer.
func (s store) ReadLast(_ context.Context, _, subject string) (message.Incoming, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.lastEntry(subject); ok {
		return e.Incoming, nil
	}
	return message.Incoming{}, client.ErrGone
}
