package acks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// startBox runs a box on a connection of its own until the test ends.
func startBox(t *testing.T, s *natstest.Server) (*Inbox, *nats.Conn, context.CancelFunc) {
	t.Helper()
	nc := s.Connect(nats.ReconnectBufSize(-1))
	b, err := New(nc, "_INBOX")
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return b, nc, stop
}

// log records results and their times.
type log struct {
	mu  sync.Mutex
	all []string
	at  []time.Duration
	t0  time.Time
}

func newLog() *log { return &log{t0: time.Now()} }

func (l *log) add(answer *nats.Msg, err error) {
	word := ""
	switch {
	case answer != nil && err != nil:
		word = "both"
	case answer != nil && answer.Header.Get("Status") != "":
		word = answer.Header.Get("Status")
	case answer != nil:
		word = string(answer.Data)
	default:
		word = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.at = append(l.all, word), append(l.at, time.Since(l.t0))
}

// once accepts the first result.
func (l *log) once(answer *nats.Msg, err error) bool { l.add(answer, err); return false }

// waits accepts no result.
func (l *log) waits(answer *nats.Msg, err error) bool { l.add(answer, err); return true }

func (l *log) check(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := fmt.Sprint(l.all); got != fmt.Sprint(want) {
		t.Fatalf("results %s at %s, want %s", got, l.at, fmt.Sprint(want))
	}
}

func (b *Inbox) outstanding() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}

func respond(t *testing.T, s *natstest.Server, subject string, f nats.MsgHandler) {
	t.Helper()
	nc := s.Connect()
	if _, err := nc.Subscribe(subject, f); err != nil {
		t.Fatal(err)
	}
	natstest.Flush(t, nc)
}

func to(subject string) *nats.Msg { return &nats.Msg{Subject: subject} }

func TestAnswer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startBox(t, s)
		respond(t, s, "x", func(m *nats.Msg) { time.Sleep(time.Second); _ = m.Respond([]byte("yes")) })
		l := newLog()
		b.Publish(to("x"), 5*time.Second, l.once)
		time.Sleep(time.Second - 1)
		l.check(t)
		time.Sleep(time.Nanosecond)
		l.check(t, "yes")
		time.Sleep(time.Minute) // no further result comes, not even the timeout
		l.check(t, "yes")
	})
}

func TestNobodyListens(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startBox(t, s)
		l := newLog()
		b.Publish(to("x"), 5*time.Second, l.once)
		l.check(t, "503")
		if l.at[0] != 0 {
			t.Errorf("the result came after %s, want at once", l.at[0])
		}
	})
}

// TestTimeout: each publish ends at its own timeout, to the nanosecond, in any order of the publishes.
func TestTimeout(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startBox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		l := newLog()
		b.Publish(to("x"), 5*time.Second, l.once)
		b.Publish(to("x"), 2*time.Second+1, l.once)
		time.Sleep(time.Second)
		b.Publish(to("x"), time.Second, l.once)
		time.Sleep(time.Minute)
		l.check(t, ErrTimeout.Error(), ErrTimeout.Error(), ErrTimeout.Error())
		if got, want := fmt.Sprint(l.at), "[2s 2.000000001s 5s]"; got != want {
			t.Errorf("the results came after %s, want %s", got, want)
		}
		if n := b.outstanding(); n > 0 {
			t.Errorf("%d still outstanding", n)
		}
	})
}

// TestSilenceSaysWhenItWasTaken: a Silence has the time of the flush that confirmed the message. If the publish stays
// pending, the next Silence has the time of a later flush.
func TestSilenceSaysWhenItWasTaken(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startBox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		began := time.Now()
		var taken []time.Duration // one goroutine of the inbox appends to it
		listen := func(times int) Func {
			return func(_ *nats.Msg, err error) bool {
				if silence, ok := errors.AsType[*Silence](err); ok {
					taken = append(taken, silence.Taken.Sub(began))
				}
				times--
				return times > 0
			}
		}
		b.PublishReportingSilence(to("x"), 5*time.Second, listen(2))
		time.Sleep(time.Nanosecond) // the first flush is over
		b.PublishReportingSilence(to("x"), 5*time.Second, listen(1))
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []time.Duration{0, flushEvery, silenceAfter}; !slices.Equal(taken, want) {
			t.Errorf("taken after %s, want %s", taken, want)
		}
	})
}

// TestSilence: ErrSilent comes exactly silenceAfter the publish. The flush takes no time of the bubble's clock.
func TestSilence(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startBox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		l := newLog()
		b.PublishReportingSilence(to("x"), 5*time.Second, l.once)
		time.Sleep(silenceAfter - 1)
		l.check(t)
		time.Sleep(time.Nanosecond)
		l.check(t, ErrSilent.Error())
		b.Publish(to("x"), time.Second, l.once) // Publish reports no silence
		time.Sleep(time.Minute)
		l.check(t, ErrSilent.Error(), ErrTimeout.Error())
	})
}

// TestSilencesOverlap: ErrSilent comes silenceAfter a publish, also while earlier publishes wait for theirs. A publish
// right after a flush is confirmed by the next flush.
func TestSilencesOverlap(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startBox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		for _, tt := range []struct{ after, want time.Duration }{
			{0, silenceAfter},
			{flushEvery, silenceAfter},
			{flushEvery + 1, silenceAfter + flushEvery - 1},
			{flushEvery + 2, silenceAfter + flushEvery - 2},
			{silenceAfter, silenceAfter},
		} {
			time.AfterFunc(tt.after, func() {
				l := newLog()
				b.PublishReportingSilence(to("x"), 5*time.Second, l.once)
				time.AfterFunc(2*silenceAfter, func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					if len(l.at) != 1 || l.at[0] != tt.want {
						t.Errorf("published after %s: results %s at %s, want silence at %s", tt.after, l.all, l.at, tt.want)
					}
				})
			})
		}
		time.Sleep(time.Minute)
	})
}

// TestWaitsThroughSilence: a Func that returns true after each ErrSilent still gets the answer or the timeout.
func TestWaitsThroughSilence(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startBox(t, s)
		respond(t, s, "late", func(m *nats.Msg) { time.Sleep(4*silenceAfter - 1); _ = m.Respond([]byte("yes")) })
		respond(t, s, "never", func(*nats.Msg) {})
		patient := func(l *log) Func {
			return func(answer *nats.Msg, err error) bool { l.add(answer, err); return errors.Is(err, ErrSilent) }
		}
		late, never := newLog(), newLog()
		b.PublishReportingSilence(to("late"), time.Minute, patient(late))
		time.Sleep(time.Second)
		silent := ErrSilent.Error()
		late.check(t, silent, silent, silent, "yes")
		never.t0 = time.Now()
		b.PublishReportingSilence(to("never"), 2*silenceAfter+1, patient(never))
		time.Sleep(time.Minute)
		never.check(t, silent, silent, ErrTimeout.Error())
	})
}

// TestResultsWhileFuncRuns: a Func that blocks while answers and the timeout come gets all of these results in order,
// until it returns false.
func TestResultsWhileFuncRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		enough string
		want   []string
	}{
		{"the first answer counts", "a", []string{ErrSilent.Error(), "a"}},
		{"the second answer counts", "b", []string{ErrSilent.Error(), "a", "b"}},
		{"none counts", "none", []string{ErrSilent.Error(), "a", "b", ErrTimeout.Error()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				b, _, _ := startBox(t, s)
				respond(t, s, "x", func(m *nats.Msg) {
					time.Sleep(2 * silenceAfter)
					_ = m.Respond([]byte("a"))
					_ = m.Respond([]byte("b"))
				})
				l := newLog()
				b.PublishReportingSilence(to("x"), 3*silenceAfter, func(answer *nats.Msg, err error) bool {
					l.add(answer, err)
					if errors.Is(err, ErrSilent) {
						time.Sleep(10 * silenceAfter) // a Func of the broker does not block
					}
					return answer == nil || string(answer.Data) != tt.enough
				})
				time.Sleep(time.Minute)
				l.check(t, tt.want...)
				if n := b.outstanding(); n > 0 {
					t.Errorf("%d still outstanding", n)
				}
			})
		})
	}
}

func TestOffline(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, ErrTimeout: false, ErrSilent: false, ErrClosed: false, errors.New("other"): false,
		nats.ErrMaxPayload: false,
		ErrDisconnected:    true, nats.ErrReconnectBufExceeded: true, nats.ErrConnectionReconnecting: true,
		nats.ErrConnectionClosed:                   true,
		fmt.Errorf("wrapped: %w", ErrDisconnected): true,
	} {
		if got := Offline(err); got != want {
			t.Errorf("Offline(%v) = %v, want %v", err, got, want)
		}
	}
}
