package acks

import (
	"cmp"
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

// startInbox runs an inbox on a new connection with these options, until the test ends.
func startInbox(t *testing.T, s *natstest.Server, opts ...nats.Option) (*Inbox, *nats.Conn, context.CancelFunc) {
	t.Helper()
	nc := s.Connect(append(opts, nats.ReconnectBufSize(-1))...)
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
	mu      sync.Mutex // guards results and times
	results []string
	times   []time.Duration
	start   time.Time
}

func newLog() *log { return &log{start: time.Now()} }

func (l *log) add(answer *nats.Msg, err error) {
	result := ""
	switch {
	case answer != nil && err != nil:
		result = "both"
	case answer != nil:
		result = cmp.Or(answer.Header.Get("Status"), string(answer.Data))
	default:
		result = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results, l.times = append(l.results, result), append(l.times, time.Since(l.start))
}

// accept accepts the first result.
func (l *log) accept(answer *nats.Msg, err error) bool { l.add(answer, err); return false }

// keepPending accepts no result.
func (l *log) keepPending(answer *nats.Msg, err error) bool { l.add(answer, err); return true }

func (l *log) check(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := fmt.Sprint(l.results); got != fmt.Sprint(want) {
		t.Fatalf("results %s at %s, want %s", got, l.times, fmt.Sprint(want))
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

func message(subject string) *nats.Msg { return &nats.Msg{Subject: subject} }

func TestAnswer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		respond(t, s, "x", func(m *nats.Msg) { time.Sleep(time.Second); _ = m.Respond([]byte("yes")) })
		l := newLog()
		b.Publish(message("x"), 5*time.Second, l.accept)
		time.Sleep(time.Second - 1)
		l.check(t)
		time.Sleep(time.Nanosecond)
		l.check(t, "yes")
		time.Sleep(time.Minute) // neither another result nor the timeout comes
		l.check(t, "yes")
	})
}

func TestNobodyListens(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		l := newLog()
		b.Publish(message("x"), 5*time.Second, l.accept)
		l.check(t, "503")
		if l.times[0] != 0 {
			t.Errorf("the result came after %s, want immediately", l.times[0])
		}
	})
}

// TestTimeout: each publish ends at its own timeout, to the nanosecond, in any order of the publishes.
func TestTimeout(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		l := newLog()
		b.Publish(message("x"), 5*time.Second, l.accept)
		b.Publish(message("x"), 2*time.Second+1, l.accept)
		time.Sleep(time.Second)
		b.Publish(message("x"), time.Second, l.accept)
		time.Sleep(time.Minute)
		l.check(t, ErrTimeout.Error(), ErrTimeout.Error(), ErrTimeout.Error())
		if got, want := fmt.Sprint(l.times), "[2s 2.000000001s 5s]"; got != want {
			t.Errorf("the results came after %s, want %s", got, want)
		}
		if n := b.outstanding(); n > 0 {
			t.Errorf("%d still outstanding", n)
		}
	})
}

// TestSilenceHasConfirmationTime: a Silence has the time of the flush that confirmed the message. If the publish stays
// pending, the next Silence has the time of a later flush.
func TestSilenceHasConfirmationTime(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		start := time.Now()
		var confirmed []time.Duration // only one goroutine of the inbox appends, so no lock is needed
		listen := func(results int) Func {
			return func(_ *nats.Msg, err error) bool {
				if silence, ok := errors.AsType[*Silence](err); ok {
					confirmed = append(confirmed, silence.ConfirmedAt.Sub(start))
				}
				results--
				return results > 0
			}
		}
		b.PublishReportingSilence(message("x"), 5*time.Second, listen(2))
		time.Sleep(time.Nanosecond) // the first flush has returned
		b.PublishReportingSilence(message("x"), 5*time.Second, listen(1))
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []time.Duration{0, flushInterval, silenceTimeout}; !slices.Equal(confirmed, want) {
			t.Errorf("confirmed after %s, want %s", confirmed, want)
		}
	})
}

// TestSilence: ErrSilent comes exactly at silenceTimeout. The flush takes no time of the bubble's clock.
func TestSilence(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		l := newLog()
		b.PublishReportingSilence(message("x"), 5*time.Second, l.accept)
		time.Sleep(silenceTimeout - 1)
		l.check(t)
		time.Sleep(time.Nanosecond)
		l.check(t, ErrSilent.Error())
		b.Publish(message("x"), time.Second, l.accept) // Publish reports no silence
		time.Sleep(time.Minute)
		l.check(t, ErrSilent.Error(), ErrTimeout.Error())
	})
}

// TestSilencesOverlap: each publish gets ErrSilent at its own silenceTimeout, even while earlier publishes wait for
// ErrSilent. A publish right after a flush is confirmed by the next flush.
func TestSilencesOverlap(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		for _, tt := range []struct{ after, want time.Duration }{
			{0, silenceTimeout},
			{flushInterval, silenceTimeout},
			{flushInterval + 1, silenceTimeout + flushInterval - 1},
			{flushInterval + 2, silenceTimeout + flushInterval - 2},
			{silenceTimeout, silenceTimeout},
		} {
			time.AfterFunc(tt.after, func() {
				l := newLog()
				b.PublishReportingSilence(message("x"), 5*time.Second, l.accept)
				time.AfterFunc(2*silenceTimeout, func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					if len(l.times) != 1 || l.times[0] != tt.want {
						t.Errorf("published after %s: results %s at %s, want silence at %s", tt.after, l.results, l.times, tt.want)
					}
				})
			})
		}
		time.Sleep(time.Minute)
	})
}

// TestSilenceAfterSlowFlush: each publish waits for its own flush only, and after a slow flush for maxSilenceTimeout at
// most. The first silence comes before the timeout, which it may postpone once.
func TestSilenceAfterSlowFlush(t *testing.T) {
	for _, tt := range []struct {
		stall           time.Duration
		during, timeout time.Duration // the results of a publish during the stall, after the publish
	}{
		{400 * time.Millisecond, 1200 * time.Millisecond, 5 * time.Second},
		{4 * time.Second, 5 * time.Second, 5*time.Second + 1},
		{4900 * time.Millisecond, 5900 * time.Millisecond, 5900*time.Millisecond + 1},
		{6 * time.Second, 0, 5 * time.Second}, // the server did not confirm in time that it took the message
	} {
		natstest.Subtest(t, tt.stall.String(), func(t *testing.T, s *natstest.Server) {
			d := s.Staller()
			b, _, _ := startInbox(t, s, nats.SetCustomDialer(d))
			respond(t, s, "x", func(*nats.Msg) {})
			time.Sleep(time.Second)
			keep := func(l *log) Func {
				return func(answer *nats.Msg, err error) bool {
					if len(l.results) == 0 || !errors.Is(err, ErrSilent) { // the first silence and the end
						l.add(answer, err)
					}
					return errors.Is(err, ErrSilent)
				}
			}
			go d.Stall(tt.stall)
			synctest.Wait()
			during := newLog()
			b.PublishReportingSilence(message("x"), 5*time.Second, keep(during))
			time.Sleep(tt.stall + 1)
			after := newLog()
			b.PublishReportingSilence(message("x"), 5*time.Second, keep(after))
			time.Sleep(time.Minute)
			synctest.Wait()
			want := []time.Duration{tt.during, tt.timeout}
			if tt.during == 0 {
				want = want[1:]
			}
			if !slices.Equal(during.times, want) {
				t.Errorf("during the stall: %s at %s, want results at %s", during.results, during.times, want)
			}
			if want := []time.Duration{silenceTimeout + flushInterval - 1, 5 * time.Second}; !slices.Equal(after.times, want) {
				t.Errorf("after the stall: %s at %s, want results at %s", after.results, after.times, want)
			}
		})
	}
}

// TestWaitsThroughSilence: a Func that returns true after each ErrSilent still gets the answer or the timeout.
func TestWaitsThroughSilence(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		respond(t, s, "late", func(m *nats.Msg) { time.Sleep(4*silenceTimeout - 1); _ = m.Respond([]byte("yes")) })
		respond(t, s, "never", func(*nats.Msg) {})
		publish := func(subject string, timeout time.Duration) *log {
			l := newLog()
			b.PublishReportingSilence(message(subject), timeout, func(answer *nats.Msg, err error) bool {
				l.add(answer, err)
				return errors.Is(err, ErrSilent)
			})
			time.Sleep(time.Minute)
			return l
		}
		silent := ErrSilent.Error()
		publish("late", time.Minute).check(t, silent, silent, silent, "yes")
		publish("never", 2*silenceTimeout+1).check(t, silent, silent, ErrTimeout.Error())
	})
}

// TestAnswerWhileSilenceIsReported: if an answer that does not count comes while the Func handles ErrSilent, the Func
// still gets the next ErrSilent.
func TestAnswerWhileSilenceIsReported(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		respond(t, s, "x", func(m *nats.Msg) { time.Sleep(silenceTimeout + 1); _ = m.Respond([]byte("stray")) })
		l := newLog()
		b.PublishReportingSilence(message("x"), 3*silenceTimeout, func(answer *nats.Msg, err error) bool {
			l.add(answer, err)
			time.Sleep(2 * time.Nanosecond) // a Func of the broker would not block
			return true
		})
		time.Sleep(time.Minute)
		l.check(t, ErrSilent.Error(), "stray", ErrSilent.Error(), ErrTimeout.Error())
	})
}

// TestResultsWhileFuncRuns: a Func that blocks while answers and the timeout come gets all of these results in order,
// until it returns false.
func TestResultsWhileFuncRuns(t *testing.T) {
	for _, tt := range []struct {
		name  string
		final string // the answer for which the Func returns false
		want  []string
	}{
		{"the first answer counts", "a", []string{ErrSilent.Error(), "a"}},
		{"the second answer counts", "b", []string{ErrSilent.Error(), "a", "b"}},
		{"none counts", "none", []string{ErrSilent.Error(), "a", "b", ErrTimeout.Error()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				b, _, _ := startInbox(t, s)
				respond(t, s, "x", func(m *nats.Msg) {
					time.Sleep(2 * silenceTimeout)
					_ = m.Respond([]byte("a"))
					_ = m.Respond([]byte("b"))
				})
				l := newLog()
				b.PublishReportingSilence(message("x"), 3*silenceTimeout, func(answer *nats.Msg, err error) bool {
					l.add(answer, err)
					if errors.Is(err, ErrSilent) {
						time.Sleep(10 * silenceTimeout) // a Func of the broker would not block
					}
					return answer == nil || string(answer.Data) != tt.final
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
