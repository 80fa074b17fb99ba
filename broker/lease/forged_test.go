package lease

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// acknowledgement is JetStream's answer to a client's message, which the client can have delivered on any subject.
const acknowledgement = `{"stream":"DELAY_10m", "seq":7}`

// flood stores messages on a subject at an interval, until stop is called or the test ends.
func flood(t *testing.T, s *natstest.Server, subject string, interval time.Duration) (stop func()) {
	t.Helper()
	nc := s.Connect()
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(interval + rand.N(interval/10)):
				if err := nc.Publish(subject, []byte(acknowledgement)); err != nil {
					t.Errorf("flood: %v", err)
				}
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(end); <-done })
	t.Cleanup(stop)
	return stop
}

// TestForgedClaim: a client stores messages on the claim's subject. The active instance stays active. Instances can
// still join, leave and take over.
func TestForgedClaim(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 10 * time.Millisecond} {
		t.Run(interval.String(), func(t *testing.T) {
			withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a := startPeer(t, s)
				time.Sleep(time.Second)
				b := startPeer(t, s)
				time.Sleep(10 * time.Second)
				stop := flood(t, s, testSubjects.Claim, interval)
				checkFor(t, time.Minute, 0, a, b)
				c := startPeer(t, s)
				checkFor(t, time.Minute, 0, a, b, c)
				checkKept(t, a)
				a.crash()
				if took := await(t, 7*time.Second, 1, a, b, c); took > time.Second+maxHandover {
					t.Errorf("a stand-by took over after %s, want at most a second", took)
				}
				checkFor(t, 10*time.Second, 1, a, b, c)
				b.stop()
				await(t, time.Second, 2, a, b, c)
				stop()
				checkFor(t, time.Minute, 2, a, b, c)
			})
		})
	}
}

// TestForgedBeforeClaim: a forged claim is stored, and no instance knows a valid one. Two instances that start wait 5
// s, and then one of them is active.
func TestForgedBeforeClaim(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		stop := flood(t, s, testSubjects.Claim, 10*time.Millisecond)
		time.Sleep(time.Second)
		a, b := startPeer(t, s), startPeer(t, s)
		checkFor(t, settleTime-200*time.Millisecond, -1, a, b)
		time.Sleep(time.Second)
		was := active(a, b)
		if was < 0 {
			t.Fatal("no instance is active, or both are")
		}
		checkFor(t, time.Minute, was, a, b)
		stop()
	})
}

// TestOldClaim: an old claim with its valid seal, which a client stores again, has no effect.
func TestOldClaim(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(10 * time.Second)
		m, ours, err := a.store.lastMessage(context.Background(), testSubjects.Claim)
		if err != nil || !ours {
			t.Fatalf("the claim: ours: %t, %v", ours, err)
		}
		header, err := m.Header()
		if err != nil {
			t.Fatal(err)
		}
		b := startPeer(t, s)
		time.Sleep(10 * time.Second)
		a.stop()
		time.Sleep(maxHandover)
		check(t, 1, a, b)
		c := startPeer(t, s)
		nc := s.Connect()
		for range 100 {
			if err := nc.PublishMsg(&nats.Msg{Subject: m.Subject, Data: m.Data,
				Header: nats.Header{message.HeaderSeal: header[message.HeaderSeal]}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(97 * time.Millisecond)
			check(t, 1, a, b, c)
		}
		checkKept(t, b)
	})
}

// TestForgedCalls: calls without a valid seal, and a repeated call, have no effect.
func TestForgedCalls(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(10 * time.Second)
		sequence, sent := lastSequence(t, js), a.nc.Stats().OutMsgs
		stop := flood(t, s, testSubjects.Calls+"all", time.Millisecond)
		time.Sleep(10 * time.Second)
		stop()
		if got, out := lastSequence(t, js)-sequence, a.nc.Stats().OutMsgs-sent; got > 6 || out > 6 {
			t.Errorf("the instance stored %d messages, and sent %d; want one in two seconds", got, out)
		}
		forged, err := json.Marshal(call{Instance: Instance{ID: "x"}, Beat: 9, Epoch: 99, Acts: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Connect().Publish(testSubjects.Calls+"all", forged); err != nil {
			t.Fatal(err)
		}
		checkFor(t, time.Second, 0, a)
		checkKept(t, a)
	})
}

// TestForgedSilence: a client answers the requests for the active instance's subscription with "no responders". The
// active instance renews its claim, so no stand-by takes over.
func TestForgedSilence(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(time.Second)
		b := startPeer(t, s)
		nc := s.Connect()
		if _, err := nc.Subscribe(testSubjects.Calls+"*", func(m *nats.Msg) {
			if m.Reply != "" {
				_ = nc.PublishMsg(&nats.Msg{Subject: m.Reply, Header: nats.Header{"Status": {"503"}}})
			}
		}); err != nil {
			t.Fatal(err)
		}
		checkFor(t, time.Minute, 0, a, b)
		if _, ok := b.silentSince(a.Instance()); !ok {
			t.Error("the forged answers did not arrive: the test shows nothing")
		}
		checkKept(t, a)
	})
}

// TestSwapIsConditional: swap replaces the last message of a subject only if it has the given sequence.
func TestSwapIsConditional(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		nc := s.Connect()
		ctx, b := context.Background(), store{conn: nc, api: jsapi.Client{Conn: nc, API: "$JS.API"}, Subjects: testSubjects}
		first, err := b.swap(ctx, testSubjects.Claim, []byte("a"), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, sequence := range []uint64{0, first + 1} {
			if _, err := b.swap(ctx, testSubjects.Claim, []byte("b"), sequence); err != errConflict {
				t.Errorf("a swap of the message %d: got %v, want errConflict", sequence, err)
			}
		}
		if _, err := b.swap(ctx, testSubjects.Claim, []byte("c"), first); err != nil {
			t.Errorf("a swap of the last message: got %v, want nil", err)
		}
	})
}

// TestAnotherStreamsAcknowledgement: swap returns an error if another stream acknowledges the write.
func TestAnotherStreamsAcknowledgement(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		nc := s.Connect()
		if _, err := nc.Subscribe("fake", func(m *nats.Msg) { _ = m.Respond([]byte(acknowledgement)) }); err != nil {
			t.Fatal(err)
		}
		b := store{conn: nc, api: jsapi.Client{Conn: nc, API: "$JS.API"}, Subjects: testSubjects}
		if seq, err := b.swap(context.Background(), "fake", nil, 0); err == nil {
			t.Errorf("swap returned the sequence %d of another stream, want an error", seq)
		}
	})
}
