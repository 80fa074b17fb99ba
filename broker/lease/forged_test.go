package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// acknowledgement is JetStream's answer to a client's message, which the client can have delivered on any subject.
const acknowledgement = `{"stream":"DELAY_10m", "seq":7}`

// flood stores messages on a subject at an interval, until it is stopped.
func flood(t *testing.T, s *natstest.Server, subject func() string, every time.Duration) (stop func()) {
	t.Helper()
	nc := s.Connect()
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(every + rand.N(every/10)):
				if err := nc.Publish(subject(), []byte(acknowledgement)); err != nil {
					t.Errorf("flood: %v", err)
				}
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(end); <-done })
	t.Cleanup(stop)
	return stop
}

func onTable() string { return meeting.Table }

// TestForgedTable: a client that stores messages on the table's subject moves no lane, and prevents no instance from
// joining, leaving, or taking over from a dead one.
func TestForgedTable(t *testing.T) {
	natstest.Long(t)
	for _, every := range []time.Duration{time.Second, 10 * time.Millisecond} {
		t.Run(every.String(), func(t *testing.T) {
			meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a, b := startPeer(t, s, lanes(6), sealed), startPeer(t, s, lanes(6), sealed)
				time.Sleep(10 * time.Second)
				hadA, hadB := a.all(), b.all()
				stop := flood(t, s, onTable, every)
				checkFor(t, 2*time.Minute, "3 3", a, b)
				checkStays(t, hadA, a)
				checkStays(t, hadB, b)

				c := startPeer(t, s, lanes(6), sealed)
				time.Sleep(20 * time.Second)
				checkFor(t, 10*time.Second, "2 2 2", a, b, c)
				a.crash()
				if took := awaitHolds(t, 7*time.Second, 6, b, c); took > 6*time.Second {
					t.Errorf("taken over after %s", took)
				}
				time.Sleep(time.Second)
				b.stop()
				awaitHolds(t, time.Second, 6, c)
				stop()
				checkFor(t, time.Minute, "6", c)
			})
		})
	}
}

// TestForgedBeforeAnybody: if a forged table is stored and no instance knows a good one, an instance that starts waits
// 5 s and founds a new table. Two of them do not take the same lanes.
func TestForgedBeforeAnybody(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		stop := flood(t, s, onTable, 10*time.Millisecond)
		time.Sleep(time.Second)
		a, b := startPeer(t, s, lanes(4), sealed), startPeer(t, s, lanes(4), sealed)
		time.Sleep(stableAfter - settle)
		checkHolds(t, "0 0", a, b)
		awaitHolds(t, 2*stableAfter, 4, a, b)
		time.Sleep(10 * time.Second)
		checkFor(t, time.Minute, "2 2", a, b)
		stop()
	})
}

// TestForgedCounter: if a client hides the counters of instances, no instance takes them for dead. If it stores an old
// counter again, that does not keep a dead instance alive.
func TestForgedCounter(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4), sealed), startPeer(t, s, lanes(4), sealed)
		time.Sleep(10 * time.Second)
		hadA, hadB := a.all(), b.all()
		n := 0
		subject := func() string { n++; return meeting.Beat + []*peer{a, b}[n%2].Instance() }
		stop := flood(t, s, subject, 5*time.Millisecond)
		checkFor(t, time.Minute, "2 2", a, b)
		checkStays(t, hadA, a)
		checkStays(t, hadB, b)
		stop()
		time.Sleep(3 * time.Second)

		m, _, err := b.store.last(context.Background(), meeting.Beat+a.Instance())
		if err != nil {
			t.Fatal(err)
		}
		a.crash()
		nc := s.Connect()
		again := &nats.Msg{Subject: m.Subject, Data: m.Data,
			Header: nats.Header{message.HeaderSeal: {keys.Seal(m.Subject, m.Data)}}}
		took := time.Now()
		for len(b.holds()) < 4 {
			if time.Since(took) > 6*time.Second {
				t.Fatalf("the dead is alive after %s", time.Since(took))
			}
			if err := nc.PublishMsg(again); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// TestOldTable: an old table with a valid seal that is stored again has no effect.
func TestOldTable(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(6), sealed)
		time.Sleep(10 * time.Second)
		m, ours, err := a.store.last(context.Background(), meeting.Table)
		if err != nil || !ours {
			t.Fatalf("the table: ours: %t, %v", ours, err)
		}
		header, err := m.Header()
		if err != nil {
			t.Fatal(err)
		}
		b := startPeer(t, s, lanes(6), sealed)
		time.Sleep(20 * time.Second)
		checkHolds(t, "3 3", a, b)
		hadA, hadB := a.all(), b.all()
		nc := s.Connect()
		for range 100 {
			if err := nc.PublishMsg(&nats.Msg{Subject: m.Subject, Data: m.Data,
				Header: nats.Header{message.HeaderSeal: header[message.HeaderSeal]}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(97 * time.Millisecond)
			checkHolds(t, "3 3", a, b)
		}
		checkStays(t, hadA, a)
		checkStays(t, hadB, b)
		c := startPeer(t, s, lanes(6), sealed)
		time.Sleep(20 * time.Second)
		checkHolds(t, "2 2 2", a, b, c)
	})
}

// TestForgedElsewhere: a client's messages next to the counters, under any number of names, cost nothing. They are
// removed together with a dead instance's counter.
func TestForgedElsewhere(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4), sealed), startPeer(t, s, lanes(4), sealed)
		time.Sleep(10 * time.Second)
		n := 0
		stop := flood(t, s, func() string { n++; return fmt.Sprint(meeting.Beat, n) }, time.Millisecond)
		before, begun := a.nc.Stats().OutMsgs, time.Now()
		checkFor(t, 30*time.Second, "2 2", a, b)
		stop()
		if got := float64(a.nc.Stats().OutMsgs-before) / time.Since(begun).Seconds(); got > 10 {
			t.Errorf("it sends %.1f messages a second, want those of a round", got)
		}
		b.crash()
		time.Sleep(time.Minute)
		if list := subjects(t, js); len(list) != 2 {
			t.Errorf("there are %d messages, want the table and one counter", len(list))
		}
	})
}

// TestForgedCalls: calls that are not ours wake no instance.
func TestForgedCalls(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s, lanes(4), sealed)
		time.Sleep(10 * time.Second)
		before := lastSequence(t, js)
		stop := flood(t, s, func() string { return meeting.Call }, time.Millisecond)
		time.Sleep(10 * time.Second)
		stop()
		if got := lastSequence(t, js) - before; got != 0 {
			t.Errorf("it stored %d messages", got)
		}
		checkHolds(t, "4", a)
	})
}

// TestLostClaimIsKept: an instance that did not read a table, because a client's message hid it, writes an older one
// back. The owner of a lane claimed meanwhile keeps it, and restores the claim.
func TestLostClaimIsKept(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4), sealed), startPeer(t, s, lanes(4), sealed)
		time.Sleep(10 * time.Second)
		hadA, hadB := a.all(), b.all()
		m, _, err := a.store.last(context.Background(), meeting.Table)
		if err != nil {
			t.Fatal(err)
		}
		old, err := ParseTable(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for lane, c := range old.Lanes { // as they were before their owners claimed them
			old.Lanes[lane] = Claim{Epoch: c.Epoch - 1, Next: c.Next, Created: c.Created}
		}
		old.Version, old.Replaces = old.Version+uint64(time.Hour/time.Millisecond), m.Sequence
		body, err := json.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.store.swap(context.Background(), meeting.Table, body, m.Sequence); err != nil {
			t.Fatal(err)
		}
		checkFor(t, 10*time.Second, "2 2", a, b)
		checkStays(t, hadA, a)
		checkStays(t, hadB, b)
		if m, _, err = b.store.last(context.Background(), meeting.Table); err != nil {
			t.Fatal(err)
		}
		now, err := ParseTable(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for lane, c := range now.Lanes {
			if c.Instance != a.Instance() && c.Instance != b.Instance() {
				t.Errorf("%s is %q's in the table", lane, c.Instance)
			}
		}
	})
}

// TestRestartsUnderForgery restarts instances in turn while a client hides every table soon after it is written. A lane
// moves when its owner hands it over, and no working owner loses one.
func TestRestartsUnderForgery(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		var peers []*peer
		for range 3 {
			peers = append(peers, startPeer(t, s, lanes(6), sealed))
		}
		time.Sleep(20 * time.Second)
		flood(t, s, onTable, 5*time.Millisecond)
		lost := 0
		for round := range 30 {
			n := round % len(peers)
			peers[n].stop()
			time.Sleep(time.Second)
			lost += peers[n].losses()
			peers[n] = startPeer(t, s, lanes(6), sealed)
			time.Sleep(time.Second + time.Duration(round)*37*time.Millisecond)
		}
		for _, p := range peers {
			lost += p.losses()
		}
		if lost > 0 {
			t.Errorf("%d leases were lost by their owners", lost)
		}
	})
}
