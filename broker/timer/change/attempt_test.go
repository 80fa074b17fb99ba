package change

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/test/natstest"
)

// TestUnansweredIsInDoubt: the answer to a request's entry is lost, and then the entry of another client is the last
// one. No entry shows whether the request's entry was stored earlier, so the outcome is unknown. If the stream has
// refused the request's entry, it was certainly not stored, so the outcome is a conflict.
func TestUnansweredIsInDoubt(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		timers, js := newTimers(t, on)
		for key, tt := range map[string]struct {
			reply jsapi.Reply
			want  timer.Outcome
		}{
			"lost":    {jsapi.Reply{Err: errors.New("no answer in time")}, timer.Unknown},
			"refused": {jsapi.Reply{Ack: jsapi.Ack{Status: 400, Code: jsapi.CodeWrongLast}}, timer.Conflict},
		} {
			timers.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply { // stores another client's set in its place
				other := &nats.Msg{Subject: m.Subject, Header: nats.Header{message.HeaderFor: {"2h"}}}
				if _, err := js.PublishMsg(ctx, other); err != nil {
					t.Error(err)
				}
				return tt.reply
			}
			got, err := timers.Do(t.Context(), Change{
				Call: timer.Call{Verb: timer.Set, Conditional: true}, Key: key, Target: "orders.x",
				Header: message.Header{message.HeaderFor: {"1h"}},
			})
			if err != nil || got.Outcome != tt.want {
				t.Errorf("the answer is %s: got %+v, %v, want %s", key, got, err, tt.want)
			}
		}
	})
}

// TestRefusedAfterDeposedLeader: a deposed leader refuses a cancel that its successor has stored, and the timer still
// looks pending. If the stream refuses the next publish, the outcome is unknown.
func TestRefusedAfterDeposedLeader(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		timers, js := newTimers(t, on)
		subject := timers.Policy.Names.Timer("k", "orders.x")
		set := &nats.Msg{Subject: subject, Header: nats.Header{message.HeaderFor: {"1h"}}}
		if _, err := js.PublishMsg(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		stale := staleReader{Reader: timers.reader()}
		var err error
		if stale.last, err = stale.Reader.Last(t.Context(), subject); err != nil {
			t.Fatal(err)
		}
		timers.Reader = stale
		replies := []jsapi.Ack{{Code: jsapi.CodeWrongLast}, {Code: jsapi.CodeStorageFull}}
		timers.Publish = func(ctx context.Context, m *nats.Msg) (r jsapi.Reply) {
			if _, err := js.PublishMsg(ctx, m); err != nil && len(replies) == 2 {
				t.Error(err)
			}
			r.Ack, replies = replies[0], replies[1:]
			return r
		}
		got, err := timers.Do(t.Context(), Change{Call: timer.Call{Verb: timer.Cancel}, Key: "k", Target: "orders.x"})
		if err != nil || got.Outcome != timer.Unknown || !got.InDoubt {
			t.Errorf("got %+v, %v, want %s", got, err, timer.Unknown)
		}
	})
}

// TestResumeAfterDeposedLeader: a deposed leader that was suspended still shows a series as pending, which its
// successor has paused. A resume waits for the successor, and resumes the series.
func TestResumeAfterDeposedLeader(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		timers, js := newTimers(t, on)
		timers.Policy.Keys = message.NewKeys([]string{"a secret of sixteen bytes"})
		timers.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply {
			return timers.API.Publish(ctx, timers.Policy.Names.TimersStream(), m)
		}
		subject := timers.Policy.Names.Timer("k", "orders.x")
		set := &nats.Msg{Subject: subject, Header: nats.Header{message.HeaderEvery: {"1h"}}}
		if _, err := js.PublishMsg(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		elected := timers.reader()
		pending, err := elected.Last(t.Context(), subject)
		if err != nil {
			t.Fatal(err)
		}
		do := func(verb timer.Verb) timer.Outcome {
			got, err := timers.Do(t.Context(), Change{Call: timer.Call{Verb: verb}, Key: "k", Target: "orders.x"})
			if err != nil {
				t.Error(err)
			}
			return got.Outcome
		}
		if got := do(timer.Pause); got != timer.Paused {
			t.Fatalf("the pause returns %s", got)
		}
		timers.Reader = &suspendedLeader{Reader: elected, last: pending, elections: 2}
		if got := do(timer.Resume); got != timer.Pending {
			t.Errorf("the resume returns %s", got)
		}
		timers.Reader = elected
		if got := do(timer.Get); got != timer.Pending {
			t.Errorf("after the resume, the series is %s", got)
		}
	})
}

// TestStoredCancelAfterDeposedLeader: a deposed leader refuses a cancel that its successor stores, and has no entry of
// the timer, while its successor reports the end of the stream. The cancel has succeeded.
func TestStoredCancelAfterDeposedLeader(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		timers, js := newTimers(t, on)
		subject := timers.Policy.Names.Timer("k", "orders.x")
		set := &nats.Msg{Subject: subject, Header: nats.Header{message.HeaderFor: {"1h"}}}
		ack, err := js.PublishMsg(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		timers.Reader = &emptyLeader{Reader: timers.reader(), reads: 3}
		timers.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply {
			if _, err := js.PublishMsg(ctx, m); err != nil {
				t.Error(err)
			}
			return jsapi.Reply{Ack: jsapi.Ack{Status: 400, Code: jsapi.CodeWrongLast}}
		}
		got, err := timers.Do(t.Context(), Change{
			Call: timer.Call{Verb: timer.Cancel, Generation: ack.Sequence}, Key: "k", Target: "orders.x",
		})
		if err != nil || got.Outcome != timer.Cancelled || !got.Changed {
			t.Errorf("got %+v, %v, want %s", got, err, timer.Cancelled)
		}
	})
}

// emptyLeader answers the first reads: it has no entry.
type emptyLeader struct {
	Reader
	reads int
}

func (l *emptyLeader) Last(ctx context.Context, subject string) (message.Incoming, error) {
	if l.reads--; l.reads >= 0 {
		return message.Incoming{}, jetstream.ErrMsgNotFound
	}
	return l.Reader.Last(ctx, subject)
}

// suspendedLeader returns an old last entry until End was called several times. Until then, no majority follows it.
type suspendedLeader struct {
	Reader
	last      message.Incoming
	elections int
}

func (s *suspendedLeader) Last(ctx context.Context, subject string) (message.Incoming, error) {
	if s.elections > 0 {
		return s.last, nil
	}
	return s.Reader.Last(ctx, subject)
}

func (s *suspendedLeader) End(ctx context.Context, subject string) (End, error) {
	end, err := s.Reader.End(ctx, subject)
	s.elections--
	end.Quorate = s.elections <= 0
	return end, err
}

// staleReader returns the same last entry each time, as a deposed leader does.
type staleReader struct {
	Reader
	last message.Incoming
}

func (s staleReader) Last(context.Context, string) (message.Incoming, error) { return s.last, nil }
