package lease

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// outageTime is the duration of an outage. It is longer than every interval of this package: the longest is a minute.
const outageTime = 3 * time.Minute

// inOutage runs f for each way to make the stream unusable, and usable again. Of the stream that is silent, only the
// answers to reads are missing; it is deleted, too, so that writes fail.
func inOutage(t *testing.T, f func(t *testing.T, start func() *peer, begin, end func())) {
	for _, kind := range []string{"full", "gone", "silent"} {
		t.Run(kind, func(t *testing.T) {
			withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
				m := &mutableAPI{}
				begin := func() {
					if err := js.DeleteStream(context.Background(), testSubjects.Stream); err != nil {
						t.Fatal(err)
					}
					m.Store(kind == "silent")
				}
				end := func() {
					if err := makeStream(js); err != nil {
						t.Fatal(err)
					}
					m.Store(false)
				}
				if kind == "full" {
					begin, end = func() { setFull(t, js, true) }, func() { setFull(t, js, false) }
				}
				var started []*peer
				f(t, func() *peer {
					p := startPeer(t, s, m.option(t, s))
					started = append(started, p)
					time.Sleep(10 * time.Second) // the first is the oldest, and active
					return p
				}, begin, end)
			})
		})
	}
}

// TestOutage: during an outage of the stream and after it, the active instance continues, alone or with stand-bys.
func TestOutage(t *testing.T) {
	for _, alone := range []bool{true, false} {
		inOutage(t, func(t *testing.T, start func() *peer, begin, end func()) {
			peers := []*peer{start()}
			if !alone {
				peers = append(peers, start(), start())
			}
			begin()
			checkFor(t, outageTime, 0, peers...)
			end()
			checkFor(t, time.Minute, 0, peers...)
			checkKept(t, peers[0])
		})
	}
}

// TestCrashInOutage: if the active instance dies in an outage, the oldest stand-by takes over within 12 s, and stays
// active after the outage.
func TestCrashInOutage(t *testing.T) {
	inOutage(t, func(t *testing.T, start func() *peer, begin, end func()) {
		a, b, c := start(), start(), start()
		begin()
		time.Sleep(time.Minute)
		check(t, 0, a, b, c)
		a.crash()
		await(t, 12*time.Second, 1, a, b, c)
		checkFor(t, outageTime, 1, a, b, c)
		end()
		checkFor(t, time.Minute, 1, a, b, c)
	})
}

// TestStopInOutage: if the active instance stops in an outage, a stand-by takes over by calls. The stop returns no
// error.
func TestStopInOutage(t *testing.T) {
	inOutage(t, func(t *testing.T, start func() *peer, begin, end func()) {
		a, b := start(), start()
		begin()
		time.Sleep(time.Minute)
		a.stop()
		await(t, 12*time.Second, 1, a, b)
		end()
		checkFor(t, time.Minute, 1, a, b)
	})
}

// TestStartInOutage: an instance that starts in an outage is active if no call shows that another one acts, even if the
// claim names a dead instance.
func TestStartInOutage(t *testing.T) {
	inOutage(t, func(t *testing.T, start func() *peer, begin, end func()) {
		a := start()
		begin()
		a.crash()
		b := start()
		await(t, outageTimeout+5*time.Second, 1, a, b)
		c := start()
		checkFor(t, time.Minute, 1, a, b, c)
		end()
		checkFor(t, time.Minute, 1, a, b, c)
	})
}

// TestPurged: after a purge of the stream, the active instance keeps its lease, and writes its claim back. An instance
// that joins afterwards stands by, and takes over if the active one dies.
func TestPurged(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a := startPeer(t, s)
		time.Sleep(time.Minute)
		st, err := js.Stream(context.Background(), testSubjects.Stream)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Purge(context.Background()); err != nil {
			t.Fatal(err)
		}
		b := startPeer(t, s) // before the claim is written back
		checkFor(t, time.Minute, 0, a, b)
		checkKept(t, a)
		if m, err := st.GetLastMsgForSubject(context.Background(), testSubjects.Claim); err != nil {
			t.Errorf("the claim is not written back: %v", err)
		} else if c, err := ParseClaim(m.Data); err != nil || c.Active.ID != a.Instance() || c.Epoch != 1 {
			t.Errorf("the claim is %+v, %v", c, err)
		}
		a.crash()
		await(t, time.Second+maxHandover, 1, a, b)
	})
}

// TestStreamDeleted: if the instances may create the stream, they do, and the active one keeps its lease.
func TestStreamDeleted(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, js jetstream.JetStream) {
		a, b := startPeer(t, s, withCreate(js)), startPeer(t, s, withCreate(js))
		time.Sleep(10 * time.Second)
		was := active(a, b)
		if err := js.DeleteStream(context.Background(), testSubjects.Stream); err != nil {
			t.Fatal(err)
		}
		checkFor(t, time.Minute, was, a, b)
		if _, err := js.Stream(context.Background(), testSubjects.Stream); err != nil {
			t.Errorf("the stream was not created again: %v", err)
		}
	})
}
