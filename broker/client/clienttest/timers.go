package clienttest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
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
	f.pending = slices.DeleteFunc(f.pending, func(r Publication) bool {
		return r.Subject == in.Subject && r.parsed.Attempts == 0
	})
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

// fire reports whether the target gets a due message. It does not get a missed round that does not fire, or a message
// that it refuses. For a timer whose firing is not stored yet, fire stores the result: the end of the timer, or the
// next round.
func (f *Fake) fire(r Publication) (delivered bool) {
	if _, ok := f.timers[r.Subject]; !ok || r.parsed.Attempts > 0 {
		_, delivered = f.attempt(r)
		return delivered
	}
	fires, outcome := true, entry.Missed
	if r.parsed.Series != nil {
		series, round := r.parsed.Round()
		d := r.parsed.Series.Table.Decide(series, round, f.now)
		fires = d.Fire
		if d.Next.Number > 0 {
			f.nextRound(r, d)
			if fires {
				_, delivered = f.attempt(r)
			}
			return delivered
		}
	}
	if fires {
		outcome, delivered = f.attempt(r)
	}
	h, history := r.parsed.OverHeader(r.Sequence, r.Sequence, outcome), timerHistory
	if entry.IsExtra(f.policy.Names, r.Subject) {
		history = entry.ExtraTime
	}
	f.policy.Keys.SealMessage(r.Subject, h, nil)
	in := f.newMessage(r.Stream, r.Subject, h, nil)
	f.timers[r.Subject] = storedEntry{Incoming: in, removalTime: f.now.Add(history)}
	return delivered
}

func (f *Fake) nextRound(r Publication, d timetable.Decision) {
	next := entry.Next{
		Round: d.Next, Wait: d.Wait, Table: r.parsed.Series.Table, First: r.parsed.Series.First, Token: r.parsed.Token,
	}
	if d.Fire {
		next.Instance = "fake"
	}
	header := r.parsed.RoundHeader(r.Sequence, next)
	f.policy.Keys.SealMessage(r.Subject, header, r.Body)
	f.store(r.Stream, r.Subject, header, r.Body)
}

// store stores an entry as the last one of its subject.
func (f *Fake) store(stream, subject string, header message.Header, body []byte) {
	in := f.newMessage(stream, subject, header, body)
	if e := f.setLast(in); e.Kind == entry.Set && e.Problem == nil {
		f.addPending(in, e.Pending)
	}
}

func (s store) MaxPayload() int64 { return maxPayload }

// reader implements change.Reader. Of each timer, it has the last entry.
type reader struct{ *Fake }

func (s store) Reader(string) change.Reader { return reader(s) }

func (r reader) Last(ctx context.Context, subject string) (message.Incoming, error) {
	return r.Next(ctx, subject, 0)
}

func (r reader) Next(_ context.Context, subject string, from uint64) (message.Incoming, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.lastEntry(subject); ok && e.Sequence >= from {
		return e.Incoming, nil
	}
	return message.Incoming{}, jetstream.ErrMsgNotFound
}

func (r reader) End(context.Context, string) (change.End, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.stream(r.policy.Names.TimersStream()).lastSequence
	return change.End{LastSeq: last, ServerTime: r.now, Quorate: true}, nil
}

// publishEntry stores an entry that the broker publishes at a client's request.
func (s store) publishEntry(_ context.Context, m *nats.Msg) jsapi.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checkExpected(m.Subject, message.Header(m.Header)) != nil {
		return jsapi.Reply{Ack: jsapi.Ack{Code: jsapi.CodeWrongLast}}
	}
	name := s.policy.Names.TimersStream()
	s.store(name, m.Subject, message.Header(m.Header), m.Data)
	return jsapi.Reply{Ack: jsapi.Ack{Stream: name, Sequence: s.stream(name).lastSequence}}
}
