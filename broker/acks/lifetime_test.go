package acks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// TestDisconnect: a loss of the connection ends every publish immediately. A publish without a connection fails, and a
// publish after the reconnect works.
func TestDisconnect(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		l := newLog()
		b.Publish(message("x"), time.Minute, l.accept)
		b.PublishReportingSilence(message("x"), time.Minute, l.keepPending)
		synctest.Wait() // until the responder has both messages: a server that stops may answer a later message with 503
		s.Stop()
		synctest.Wait()
		l.check(t, ErrDisconnected.Error(), ErrDisconnected.Error())
		offline := newLog()
		var offlineErr error
		b.Publish(message("x"), time.Minute,
			func(answer *nats.Msg, err error) bool { offlineErr = err; return offline.accept(answer, err) })
		synctest.Wait()
		if !Offline(offlineErr) {
			t.Errorf("published while offline: %v, want an error that counts as offline", offlineErr)
		}
		s.Start()
		time.Sleep(time.Second)
		online := newLog()
		b.Publish(message("x"), time.Second, online.accept)
		time.Sleep(time.Minute)
		online.check(t, ErrTimeout.Error())
		l.check(t, ErrDisconnected.Error(), ErrDisconnected.Error())
		if len(offline.results) != 1 || b.outstanding() > 0 {
			t.Errorf("results %v, %d outstanding; want one result, none outstanding", offline.results, b.outstanding())
		}
	})
}

// TestClose: when the inbox closes, every outstanding publish fails. So does every later publish.
func TestClose(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, nc, stop := startInbox(t, s)
		respond(t, s, "x", func(*nats.Msg) {})
		l := newLog()
		b.Publish(message("x"), time.Minute, l.accept)
		b.PublishReportingSilence(message("x"), time.Minute, l.keepPending)
		stop()
		l.check(t, ErrClosed.Error(), ErrClosed.Error())
		b.Publish(message("x"), time.Minute, l.accept)
		l.check(t, ErrClosed.Error(), ErrClosed.Error(), ErrClosed.Error())
		if n := nc.NumSubscriptions(); n > 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// TestRefusedByTheClient: the Func of a publish that nats.go refuses is called once, with the reason.
func TestRefusedByTheClient(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, nc, _ := startInbox(t, s)
		var errs []error
		keep := func(_ *nats.Msg, err error) bool { errs = append(errs, err); return true }
		b.Publish(&nats.Msg{Subject: "x", Data: make([]byte, nc.MaxPayload()+1)}, time.Second, keep)
		b.PublishReportingSilence(&nats.Msg{Subject: ""}, time.Second, keep)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(errs) != 2 || !errors.Is(errs[0], nats.ErrMaxPayload) || !errors.Is(errs[1], nats.ErrBadSubject) {
			t.Errorf("errors %v, want %v and %v", errs, nats.ErrMaxPayload, nats.ErrBadSubject)
		}
	})
}

// TestForgedAnswers: a client that knows other reply subjects of the inbox cannot derive the reply subject of this
// publish from them. A token has only one encoding.
func TestForgedAnswers(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b, _, _ := startInbox(t, s)
		seen := make(chan string, 4)
		respond(t, s, "x", func(m *nats.Msg) { seen <- strings.TrimPrefix(m.Reply, b.inbox) })
		l, others := newLog(), newLog()
		b.Publish(message("x"), time.Second, others.accept)
		b.Publish(message("x"), time.Second, l.accept)
		b.Publish(message("x"), time.Second, others.accept)
		natstest.Flush(t, b.nc)
		before, mine, after := <-seen, <-seen, <-seen
		forger := s.Connect()
		tokens := []string{"0", "2", "zzzzzzzzzzzzzzzzz", "-1", "+1", "01", "1x", "é", mine + "=", mine + "A", mine[:21],
			strings.ToUpper(mine), " " + mine}
		for _, other := range []string{before, after} {
			raw, err := encoding.DecodeString(other)
			if err != nil || len(raw) != 16 {
				t.Fatalf("the token %q: %v", other, err)
			}
			for i := range raw { // each byte plus and minus 1 and 2
				for _, step := range []byte{1, 2, 255, 254} {
					neighbour := slices.Clone(raw)
					neighbour[i] += step
					tokens = append(tokens, encoding.EncodeToString(neighbour))
				}
			}
		}
		// The last character of a token holds two bits; the other four must be zero.
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		last := strings.IndexByte(alphabet, mine[21])
		tokens = append(tokens, mine[:21]+alphabet[last+1:last+2])
		for _, token := range tokens {
			_ = forger.Publish(b.inbox+token, []byte("forged "+token))
		}
		natstest.Flush(t, forger)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := l.results; len(got) != 1 || got[0] != ErrTimeout.Error() {
			t.Errorf("results %v, want the timeout only", got)
		}
	})
}

// BenchmarkToken measures the generation of a token.
func BenchmarkToken(b *testing.B) {
	box := Inbox{tokens: rand.NewChaCha8([32]byte{1})}
	b.ReportAllocs()
	for b.Loop() {
		t := box.newTokenLocked()
		if got, ok := parseToken(encoding.EncodeToString(t[:])); !ok || got != t {
			b.Fatal("an encoded token is not parsed to the same token")
		}
	}
}

// TestThousandsOutstanding: thousands of publishes with all kinds of results are outstanding while the connection is
// lost and restored. Each Func gets exactly one final result, and the inbox keeps nothing.
func TestThousandsOutstanding(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				rng := rand.New(rand.NewPCG(seed, 2))
				b, _, _ := startInbox(t, s)
				respond(t, s, "yes", func(m *nats.Msg) { _ = m.Respond([]byte("yes")) })
				respond(t, s, "silent", func(*nats.Msg) {})
				const count = 6000
				final := make([]atomic.Int32, count)
				var publishing sync.WaitGroup
				publishing.Go(func() {
					for i := range count {
						f := func(answer *nats.Msg, err error) bool {
							if errors.Is(err, ErrSilent) && i%2 == 0 {
								return true
							}
							final[i].Add(1)
							return false
						}
						timeout := time.Duration(1 + rng.IntN(int(3*time.Second)))
						switch subject := []string{"yes", "silent", "nobody"}[rng.IntN(3)]; {
						case rng.IntN(2) == 0:
							b.Publish(message(subject), timeout, f)
						default:
							b.PublishReportingSilence(message(subject), timeout, f)
						}
						if i%500 == 0 {
							time.Sleep(time.Duration(rng.IntN(int(200 * time.Millisecond))))
						}
					}
				})
				for range 3 {
					time.Sleep(300 * time.Millisecond)
					s.Restart(50 * time.Millisecond)
				}
				publishing.Wait()
				time.Sleep(time.Minute)
				synctest.Wait()
				for i := range final {
					if got := final[i].Load(); got != 1 {
						t.Errorf("publish %d has %d final results, want 1", i, got)
					}
				}
				if b.outstanding() > 0 || b.deadlines.Len() > 0 {
					t.Errorf("%d calls and %d deadlines are left", b.outstanding(), b.deadlines.Len())
				}
			})
		})
	}
}
