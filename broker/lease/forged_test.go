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

// flood stores messages on subjects at an interval, until stop is called or the test ends.
func flood(t *testing.T, s *natstest.Server, subject func() string, interval time.Duration) (stop func()) {
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

func tableSubject() string { return testSubjects.Table }

// TestForgedTable: a client stores messages on the table's subject. No lane moves, and instances can still join, leave,
// and take over from a dead instance.
func TestForgedTable(t *testing.T) {
	natstest.SkipShort(t)
	for _, interval := range []time.Duration{time.Second, 10 * time.Millisecond} {
		t.Run(interval.String(), func(t *testing.T) {
			withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
				a, b := startPeer(t, s, lanes(6), withKeys), startPeer(t, s, lanes(6), withKeys)
				time.Sleep(10 * time.Second)
				leases := leasesOf(a, b)
				stop := flood(t, s, tableSubject, interval)
				checkFor(t, 2*time.Minute, "3 3", a, b)
				checkKept(t, leases)

				c := startPeer(t, s, lanes(6), withKeys)
				time.Sleep(20 * time.Second)
				checkFor(t, 10*time.Second, "2 2 2", a, b, c)
				a.crash()
				if took := awaitHolds(t, 7*time.Second, 6, b, c); took > 6*time.Second {
					t.Errorf("the other instances took over after %s, want at most 6s", took)
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

// TestForgedBeforeTable: a forged table is stored, and no instance has a valid table. Two instances that start wait 5 s
// and create a new table. They do not take the same lanes.
func TestForgedBeforeTable(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		stop := flood(t, s, tableSubject, 10*time.Millisecond)
		time.Sleep(time.Second)
		a, b := startPeer(t, s, lanes(4), withKeys), startPeer(t, s, lanes(4), withKeys)
		time.Sleep(stabilityTime - maxHandover)
		checkHolds(t, "0 0", a, b)
		awaitHolds(t, 2*stabilityTime, 4, a, b)
		time.Sleep(10 * time.Second)
		checkFor(t, time.Minute, "2 2", a, b)
		stop()
	})
}

// TestForgedCounter: if a client hides the counters of live instances, no instance treats them as dead. If the client
// stores an old counter of a dead instance again, no instance treats it as alive.
func TestForgedCounter(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4), withKeys), startPeer(t, s, lanes(4), withKeys)
		time.Sleep(10 * time.Second)
		leases := leasesOf(a, b)
		n := 0
		subject := func() string { n++; return testSubjects.Beat + []*peer{a, b}[n%2].Instance() }
		stop := flood(t, s, subject, 5*time.Millisecond)
		checkFor(t, time.Minute, "2 2", a, b)
		checkKept(t, leases)
		stop()
		time.Sleep(3 * time.Second)

		m, _, err := b.store.lastMessage(context.Background(), testSubjects.Beat+a.Instance())
		if err != nil {
			t.Fatal(err)
		}
		a.crash()
		nc := s.Connect()
		repeated := &nats.Msg{Subject: m.Subject, Data: m.Data,
			Header: nats.Header{message.HeaderSeal: {keys.Seal(m.Subject, m.Data)}}}
		crashed := time.Now()
		for len(b.holds()) < 4 {
			if time.Since(crashed) > 6*time.Second {
				t.Fatalf("after %s, the dead instance still counts as alive", time.Since(crashed))
			}
			if err := nc.PublishMsg(repeated); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// TestOldTable: an old table with its valid seal, which a client stores again, has no effect.
func TestOldTable(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := startPeer(t, s, lanes(6), withKeys)
		time.Sleep(10 * time.Second)
		m, ours, err := a.store.lastMessage(context.Background(), testSubjects.Table)
		if err != nil || !ours {
			t.Fatalf("the table: ours: %t, %v", ours, err)
		}
		header, err := m.Header()
		if err != nil {
			t.Fatal(err)
		}
		b := startPeer(t, s, lanes(6), withKeys)
		time.Sleep(20 * time.Second)
		checkHolds(t, "3 3", a, b)
		leases := leasesOf(a, b)
		nc := s.Connect()
		for range 100 {
			if err := nc.PublishMsg(&nats.Msg{Subject: m.Subject, Data: m.Data,
				Header: nats.Header{message.HeaderSeal: header[message.HeaderSeal]}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(97 * time.Millisecond)
			checkHolds(t, "3 3", a, b)
		}
		checkKept(t, leases)
		c := startPeer(t, s, lanes(6), withKeys)
		time.Sleep(20 * time.Second)
		checkHolds(t, "2 2 2", a, b, c)
	})
}

// TestForgedInstances: a client stores messages under the names of many instances that do not exist. Live instances
// ignore these messages, and remove them together with a dead instance's counter.
func TestForgedInstances(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4), withKeys), startPeer(t, s, lanes(4), withKeys)
		time.Sleep(10 * time.Second)
		n := 0
		stop := flood(t, s, func() string { n++; return fmt.Sprint(testSubjects.Beat, n) }, time.Millisecond)
		sent, start := a.nc.Stats().OutMsgs, time.Now()
		checkFor(t, 30*time.Second, "2 2", a, b)
		stop()
		if got := float64(a.nc.Stats().OutMsgs-sent) / time.Since(start).Seconds(); got > 10 {
			t.Errorf("an instance sends %.1f messages a second, want at most 10", got)
		}
		b.crash()
		time.Sleep(time.Minute)
		if list := subjects(t, js); len(list) != 2 {
			t.Errorf("the stream has messages on %d subjects, want the table and one counter", len(list))
		}
	})
}

// TestForgedCalls: calls without a valid seal cause no round.
func TestForgedCalls(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s, lanes(4), withKeys)
		time.Sleep(10 * time.Second)
		sequence := lastSequence(t, js)
		stop := flood(t, s, func() string { return testSubjects.Call }, time.Millisecond)
		time.Sleep(10 * time.Second)
		stop()
		if got := lastSequence(t, js) - sequence; got != 0 {
			t.Errorf("the instance stored %d messages, want none", got)
		}
		checkHolds(t, "4", a)
	})
}

// TestLostClaimIsKept: a client's message hid a table with new claims from an instance, and this instance wrote an
// older table back. The owners of the claimed lanes keep them, and restore their claims.
func TestLostClaimIsKept(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a, b := startPeer(t, s, lanes(4), withKeys), startPeer(t, s, lanes(4), withKeys)
		time.Sleep(10 * time.Second)
		leases := leasesOf(a, b)
		m, _, err := a.store.lastMessage(context.Background(), testSubjects.Table)
		if err != nil {
			t.Fatal(err)
		}
		old, err := ParseTable(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for lane, c := range old.Lanes { // the epoch before the present claim
			old.Lanes[lane] = Claim{Epoch: c.Epoch - 1, Next: c.Next, Created: c.Created}
		}
		old.Version, old.Replaces = old.Version+uint64(time.Hour/time.Millisecond), m.Sequence
		body, err := json.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.store.swap(context.Background(), testSubjects.Table, body, m.Sequence); err != nil {
			t.Fatal(err)
		}
		checkFor(t, 10*time.Second, "2 2", a, b)
		checkKept(t, leases)
		if m, _, err = b.store.lastMessage(context.Background(), testSubjects.Table); err != nil {
			t.Fatal(err)
		}
		restored, err := ParseTable(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for lane, c := range restored.Lanes {
			if c.Instance != a.Instance() && c.Instance != b.Instance() {
				t.Errorf("the table has the owner %q for %s, want one of the two instances", c.Instance, lane)
			}
		}
	})
}

// TestRestartsUnderForgery restarts instances in turn while a client hides every table soon after its write. A lane
// moves only when its owner hands the lane over, and no working owner loses a lane.
func TestRestartsUnderForgery(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		var peers []*peer
		for range 3 {
			peers = append(peers, startPeer(t, s, lanes(6), withKeys))
		}
		time.Sleep(20 * time.Second)
		flood(t, s, tableSubject, 5*time.Millisecond)
		lost := 0
		for round := range 30 {
			n := round % len(peers)
			peers[n].stop()
			time.Sleep(time.Second)
			lost += peers[n].losses()
			peers[n] = startPeer(t, s, lanes(6), withKeys)
			time.Sleep(time.Second + time.Duration(round)*37*time.Millisecond)
		}
		for _, p := range peers {
			lost += p.losses()
		}
		if lost > 0 {
			t.Errorf("working owners lost %d leases, want none", lost)
		}
	})
}
