package lane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// remake makes the reader's consumer anew under its name, from where it began and counting from one, as nats-server
// does when the server that held it in memory is restarted. Requests that were pending are gone, and nobody says so.
func (r *rig) remake(w *wire) {
	r.t.Helper()
	ctx := context.Background()
	for _, name := range r.consumers() {
		c, err := r.js.Consumer(ctx, r.spec.Stream, name)
		if err != nil {
			continue // its reader has replaced it meanwhile
		}
		cfg := c.CachedInfo().Config
		w.mute.Store(true)
		if err := r.js.DeleteConsumer(ctx, r.spec.Stream, name); err != nil {
			r.t.Fatalf("delete the consumer: %v", err)
		}
		if _, err := r.js.CreateConsumer(ctx, r.spec.Stream, cfg); err != nil {
			r.t.Fatalf("make the consumer anew: %v", err)
		}
		synctest.Wait()
		w.mute.Store(false)
	}
}

// TestRemadeConsumer makes the consumer anew when everything it delivered was committed, and loses just so many of its
// messages on the wire that its numbers go on where they stopped. Nothing between may be passed by.
func TestRemadeConsumer(t *testing.T) {
	for _, lost := range []int{0, 1, 9, 10} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				w := &wire{server: s}
				o := r.read(s.Connect(nats.SetCustomDialer(w)), 0)
				r.publish(1, 10)
				o.check(1, 10)
				r.purge(jetstream.WithPurgeSequence(11)) // the cursor has passed all of it
				r.remake(w)
				left := lost
				w.set(func(head, _ string) bool {
					lose := isStored(head) && left > 0
					if lose {
						left--
					}
					return lose
				})
				r.publish(11, 40)
				o.Probe() // asks the consumer that counts anew
				time.Sleep(time.Minute)
				o.check(1, 40)
			})
		})
	}
}

// TestNothingBetween does all that at random: publishes, commits, deletes in the midst, loses messages and heartbeats
// on the wire, makes the consumer anew, deletes it, and restarts the server. Every message that nobody deleted is read
// once, in order.
func TestNothingBetween(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				rnd, loss := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)) // one for each goroutine
				r := newRig(t, s)
				w := &wire{server: s}
				var share atomic.Int64 // of the messages from the server, in percent, that get lost
				var hide atomic.Bool   // a consumer that was made anew, until its numbers join ours
				shown := make(map[string]int)
				w.set(func(head, body string) bool {
					if isStored(head) {
						reply := strings.Split(head[strings.Index(head, "$JS.ACK."):], ".")
						consumer, number := reply[3], atoi(reply[6])
						if hide.Load() && number <= shown[consumer] {
							return true
						}
						shown[consumer] = number
						return loss.Int64N(100) < share.Load()
					}
					return strings.Contains(body, "Idle Heartbeat") && loss.Int64N(100) < share.Load()
				})
				o := r.read(s.Connect(nats.SetCustomDialer(w)), 0)
				removed := make(map[string]bool)
				last := 0
				for range 60 {
					switch rnd.IntN(8) {
					case 0, 1:
						n := rnd.IntN(300)
						r.burst(last+1, last+n)
						last += n
					case 2: // the owner commits what it has
						synctest.Wait()
						o.mu.Lock()
						arrived := uint64(len(o.stored))
						if arrived > 0 {
							arrived = o.stored[arrived-1].Sequence
						}
						o.mu.Unlock()
						if arrived > 0 {
							r.purge(jetstream.WithPurgeSequence(arrived + 1))
						}
					case 3: // somebody deletes
						for range rnd.IntN(20) {
							seq := uint64(1 + rnd.IntN(max(1, last)))
							if err := o.api.Delete(t.Context(), r.spec.Stream, seq); err == nil {
								removed[fmt.Sprint(seq)] = true
							}
						}
					case 4:
						hide.Store(rnd.IntN(3) > 0)
						r.remake(w)
						o.Probe()
					case 5:
						r.deleteConsumers()
					case 6:
						share.Store(rnd.Int64N(30))
					case 7:
						share.Store(0)
						if rnd.IntN(4) == 0 {
							s.Restart(time.Duration(rnd.IntN(10_000)) * time.Millisecond)
							time.Sleep(3 * time.Second)
						}
					}
					time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
				}
				share.Store(0)
				r.burst(last+1, last+1)
				last++
				time.Sleep(2 * time.Hour)
				stream, err := r.js.Stream(t.Context(), r.spec.Stream)
				if err != nil {
					t.Fatal(err)
				}
				if got := stream.CachedInfo().State.LastSeq; got != uint64(last) {
					t.Fatalf("%d of %d messages were stored", got, last)
				}
				o.mu.Lock()
				defer o.mu.Unlock()
				for _, want := range numbers(1, last) {
					if !removed[want] && !slices.Contains(o.got, want) {
						t.Errorf("%s was passed by", want)
					}
				}
				for i, m := range o.stored {
					if i > 0 && m.Sequence <= o.stored[i-1].Sequence {
						t.Errorf("%d was read after %d", m.Sequence, o.stored[i-1].Sequence)
					}
				}
			})
		})
	}
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// TestRemadeAndIdle: a consumer that was made anew and has nothing to show says with its first heartbeat that it counts
// anew.
func TestRemadeAndIdle(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		w := &wire{server: s}
		o := r.read(s.Connect(nats.SetCustomDialer(w)), 0)
		r.publish(1, 10)
		o.check(1, 10)
		r.purge(jetstream.WithPurgeSequence(11))
		r.remake(w)
		o.Probe()
		time.Sleep(time.Second)
		o.checkEpochs("fresh")
		time.Sleep(backoffLow + 10*time.Millisecond)
		o.checkEpochs("fresh", "same")
		r.publish(11, 12)
		o.check(1, 12)
	})
}

// TestRemadeAndCaughtUp: a consumer was made anew, and lost just so many messages on the wire that it counts as we do.
// Nothing follows that would show a gap; where it is in the stream tells.
func TestRemadeAndCaughtUp(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		w := &wire{server: s}
		o := r.read(s.Connect(nats.SetCustomDialer(w)), 0)
		r.publish(1, 10)
		o.check(1, 10)
		r.purge(jetstream.WithPurgeSequence(11))
		r.remake(w)
		w.set(func(head, _ string) bool { return isStored(head) })
		o.Probe()
		r.publish(11, 20)
		time.Sleep(time.Second)
		w.set(func(string, string) bool { return false })
		time.Sleep(5 * time.Second)
		o.check(1, 20)
		o.checkEpochs("fresh", "same")
	})
}

// TestDeletedIsNotTaken: what the leader had deleted when the epoch began is not taken from a replica that lags, and
// asks nobody.
func TestDeletedIsNotTaken(t *testing.T) {
	r := NewReader(ReaderConfig{From: 3})
	r.deleted = deletedOf([]uint64{9, 4, 5, 12, 11, 6})
	for seq := range uint64(14) {
		if err := r.accept(t.Context(), Stored{Sequence: seq + 1}); err != nil {
			t.Fatal(err)
		}
	}
	var got []uint64
	for len(r.items) > 0 {
		got = append(got, (<-r.items).Sequence)
	}
	if want := []uint64{3, 7, 8, 10, 13, 14}; !slices.Equal(got, want) {
		t.Errorf("took %d, want %d", got, want)
	}
}

// TestGapIsProven asks the leader what lies in a gap: nothing, something, or nothing that the leader knows of.
func TestGapIsProven(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.publish(1, 10)
		nc := s.Connect()
		reader := NewReader(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), APIPrefix: "$JS.API", Stream: r.spec.Stream,
			Delay: r.spec.Delay, From: 1})
		for _, seq := range []uint64{2, 3, 7, 10} {
			if err := reader.api.Delete(t.Context(), r.spec.Stream, seq); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			seq   uint64
			err   error
			taken int
		}{
			{1, nil, 1}, {5, errLost, 1}, {3, nil, 1}, {4, nil, 2}, {6, errLost, 2}, {5, nil, 3}, {6, nil, 4}, {7, nil, 5},
			{10, errLost, 5},
			{8, nil, 6}, {9, nil, 7}, {10, nil, 8}, {12, errUnproven, 8},
		} {
			err := reader.accept(t.Context(), Stored{Sequence: step.seq})
			if !errors.Is(err, step.err) || len(reader.items) != step.taken {
				t.Errorf("%d: %v, %d taken; want %v, %d", step.seq, err, len(reader.items), step.err, step.taken)
			}
		}
	})
}

// TestDeletedRuns asks for every sequence, of random sets.
func TestDeletedRuns(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var all []uint64
		in := make(map[uint64]bool)
		for range rnd.IntN(40) {
			seq := 1 + rnd.Uint64N(50)
			all, in[seq] = append(all, seq), true
		}
		d := deletedOf(all)
		for seq := range uint64(60) {
			want := seq
			for in[want] {
				want++
			}
			if got := d.past(seq); got != want {
				t.Fatalf("seed %d: past %d is %d, want %d; deleted %v", seed, seq, got, want, d)
			}
		}
	}
}
