package deliver

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// arrivals are the numbers that a subscriber received, by target.
type arrivals struct {
	mu       sync.Mutex // guards byTarget
	byTarget map[string][]int
}

func (a *arrivals) add(m *nats.Msg) {
	n, _ := strconv.Atoi(string(m.Data))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byTarget == nil {
		a.byTarget = make(map[string][]int)
	}
	a.byTarget[m.Subject] = append(a.byTarget[m.Subject], n)
}

// check checks that a target got want messages, in order.
func (a *arrivals) check(t *testing.T, target string, want int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	got := a.byTarget[target]
	if len(got) != want {
		t.Errorf("%s was sent %d, want %d", target, len(got), want)
	}
	for i := 1; i < len(got); i++ {
		if got[i] < got[i-1] {
			t.Fatalf("%s was sent %d after %d", target, got[i], got[i-1])
		}
	}
}

// TestNothingOvertakesReady: the answer to a large message makes room for a waiting message. A third message comes when
// the waiting message has room but is not sent yet. The third message does not overtake the waiting message.
func TestNothingOvertakesReady(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
		var seen arrivals
		k.subscribe("orders.>", seen.add)
		deliver := func(n, size int, done func(Result)) {
			data := strconv.AppendInt(nil, int64(n), 10)
			k.Deliver(Message{Target: "orders.x", Mode: message.ModeStream, Data: data, Size: size}, done)
		}
		ignore := func(Result) {}
		deliver(0, defaultWindowBytes/groupDivisor, func(Result) { deliver(2, 1, ignore) })
		deliver(1, 1, ignore)
		synctest.Wait()
		seen.check(t, "orders.x", 3)
		k.checkIdle()
	})
}

// TestNothingOvertakesAcrossGroups: the stream of a target becomes known, and the group of that stream has room. The
// target changes its group only after all messages that wait in the old group have been sent.
func TestNothingOvertakesAcrossGroups(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.lookup.api = fixedReply(`{"total":1,"streams":[{"config":{"name":"S","subjects":["s.>"]}}]}`)
		var seen arrivals
		var unanswered []*nats.Msg
		hold := true
		var mu sync.Mutex // guards unanswered and hold
		answer := func(m *nats.Msg) {
			if err := m.Respond([]byte(`{"stream":"S","seq":1}`)); err != nil {
				t.Error(err)
			}
		}
		k.subscribe("s.>", func(m *nats.Msg) {
			seen.add(m)
			mu.Lock()
			defer mu.Unlock()
			if hold {
				unanswered = append(unanswered, m)
				return
			}
			answer(m)
		})
		deliver := func(from, count int) {
			for n := from; n < from+count; n++ {
				m := Message{Target: "s.x", Mode: message.ModeStream, Data: strconv.AppendInt(nil, int64(n), 10)}
				k.Deliver(m, func(Result) {})
			}
			synctest.Wait()
		}
		deliver(0, share+100) // this causes a list of the streams
		if k.lookup.snapshot.Load() == nil {
			t.Fatal("the streams are not known")
		}
		deliver(share+100, 100)
		seen.check(t, "s.x", share)
		mu.Lock()
		hold = false
		for _, m := range unanswered {
			answer(m)
		}
		mu.Unlock()
		synctest.Wait()
		seen.check(t, "s.x", share+200)
		k.checkIdle()
		deliver(share+200, 1)
		k.mu.Lock()
		defer k.mu.Unlock()
		if g := k.targets.bySubject["s.x"].group; g != k.groups.byName[groupName{stream: "S"}] {
			t.Error("no message waits, but the target does not belong to the group of its stream")
		}
	})
}

// TestOrderOfEachTarget: the messages for each target are sent in order, for targets of all kinds, while streams are
// created. The window is so small that the groups often have no room.
func TestOrderOfEachTarget(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				k.mu.Lock()
				k.groups.window.maxMessages = 64
				k.mu.Unlock()
				var seen arrivals
				targets := []string{"orders.a", "orders.b", "logs.a", "ui.a", "ui.b", "ui"}
				k.subscribe("*.*", seen.add)
				k.subscribe("ui", seen.add)
				k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Storage: jetstream.MemoryStorage})
				results := &count{}
				var delivering sync.WaitGroup
				const perTarget = 2000
				for i, target := range targets {
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					delivering.Go(func() {
						for n := range perTarget {
							m := Message{Target: target, Data: strconv.AppendInt(nil, int64(n), 10), Size: rng.IntN(defaultWindowBytes / 8)}
							k.Deliver(m, func(Result) { results.add() })
							if rng.IntN(40) == 0 {
								time.Sleep(time.Duration(rng.IntN(int(300 * time.Millisecond))))
							}
						}
					})
				}
				for i := range 3 {
					time.Sleep(snapshotValidity / 2)
					subject := []string{"logs.>", "ui.a", "other"}[i]
					k.stream(jetstream.StreamConfig{Name: fmt.Sprint("MORE", i), Subjects: []string{subject}})
				}
				delivering.Wait()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got, want := results.get(), perTarget*len(targets); got != want {
					t.Errorf("%d results, want %d", got, want)
				}
				for _, target := range targets {
					seen.mu.Lock()
					got := len(seen.byTarget[target])
					seen.mu.Unlock()
					if got < perTarget/40 {
						t.Errorf("%s was sent %d messages, too few for the test", target, got)
					}
					seen.check(t, target, got)
				}
				k.checkIdle()
			})
		})
	}
}
