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

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// remake makes the reader's consumer anew under its name, from where it began and counting from one, as nats-server
// does when the server that held it in memory is restarted. Pending requests are gone without a word.
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

// tenCommitted is a rig whose owner has read ten messages over a wire, and has committed all of them.
func tenCommitted(t *testing.T, s *natstest.Server) (*rig, *wire, *owner) {
	t.Helper()
	r, w := newRig(t, s), &wire{server: s}
	o := r.readOver(w)
	r.publish(1, 10)
	o.check(1, 10)
	r.purge(jetstream.WithPurgeSequence(11))
	return r, w, o
}

// TestRemadeConsumer makes the consumer anew when everything it delivered was committed. It loses so many of its
// messages on the wire that its numbers go on where they stopped. No message may be skipped.
func TestRemadeConsumer(t *testing.T) {
	for _, lost := range []int{0, 1, 9, 10} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r, w, o := tenCommitted(t, s)
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

// TestNothingBetween does all that at random: publishes, commits, deletes in the middle, loses messages and heartbeats
// on the wire, makes the consumer anew, deletes it, and restarts the server. Every message that nobody deleted is read
// once, in order.
func TestNothingBetween(t *testing.T) {
	natstest.Long(t)
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				d := newDisorder(t, s, seed)
				for range 60 {
					d.step()
					time.Sleep(time.Duration(d.rnd.IntN(3000)) * time.Millisecond)
				}
				d.share.Store(0)
				d.burst(1)
				time.Sleep(2 * time.Hour)
				d.check()
			})
		})
	}
}

// disorder is a rig to which random things happen.
type disorder struct {
	*rig
	w       *wire
	o       *owner
	rnd     *rand.Rand
	last    int             // the last message published
	removed map[string]bool // messages that somebody deleted

	// The rest belongs to the goroutine of the wire, but for the two atomics.
	loss  *rand.Rand
	shown map[string]int // the highest number that each consumer showed
	share atomic.Int64   // of the messages from the server, in percent, that get lost
	hide  atomic.Bool    // messages of a consumer that was made anew get lost, until its numbers continue our count
}

func newDisorder(t *testing.T, s *natstest.Server, seed uint64) *disorder {
	t.Helper()
	d := &disorder{
		rig: newRig(t, s), w: &wire{server: s}, removed: make(map[string]bool), shown: make(map[string]int),
		rnd: rand.New(rand.NewPCG(seed, 1)), loss: rand.New(rand.NewPCG(seed, 2)), // one for each goroutine
	}
	d.w.set(d.lose)
	d.o = d.readOver(d.w)
	return d
}

func (d *disorder) lose(head, body string) bool {
	if !isStored(head) {
		return strings.Contains(body, "Idle Heartbeat") && d.loss.Int64N(100) < d.share.Load()
	}
	reply := strings.Split(head[strings.Index(head, "$JS.ACK."):], ".")
	consumer, number := reply[3], atoi(reply[6])
	if d.hide.Load() && number <= d.shown[consumer] {
		return true
	}
	d.shown[consumer] = number
	return d.loss.Int64N(100) < d.share.Load()
}

// step is one thing that happens.
func (d *disorder) step() {
	switch d.rnd.IntN(8) {
	case 0, 1:
		d.burst(d.rnd.IntN(300))
	case 2: // the owner commits what it has
		synctest.Wait()
		if arrived := d.arrived(); arrived > 0 {
			d.purge(jetstream.WithPurgeSequence(arrived + 1))
		}
	case 3: // somebody deletes
		for range d.rnd.IntN(20) {
			seq := uint64(1 + d.rnd.IntN(max(1, d.last)))
			if err := d.o.api.Delete(d.t.Context(), d.spec.Stream, seq); err == nil {
				d.removed[fmt.Sprint(seq)] = true
			}
		}
	case 4:
		d.hide.Store(d.rnd.IntN(3) > 0)
		d.remake(d.w)
		d.o.Probe()
	case 5:
		d.deleteConsumers()
	case 6:
		d.share.Store(d.rnd.Int64N(30))
	case 7:
		d.share.Store(0)
		if d.rnd.IntN(4) == 0 {
			d.server.Restart(time.Duration(d.rnd.IntN(10_000)) * time.Millisecond)
			time.Sleep(3 * time.Second)
		}
	}
}

func (d *disorder) burst(n int) {
	d.rig.burst(d.last+1, d.last+n)
	d.last += n
}

// arrived is the sequence of the last message that the owner took, zero if it took none.
func (d *disorder) arrived() uint64 {
	d.o.mu.Lock()
	defer d.o.mu.Unlock()
	if len(d.o.stored) == 0 {
		return 0
	}
	return d.o.stored[len(d.o.stored)-1].Sequence
}

func (d *disorder) check() {
	d.t.Helper()
	stream, err := d.js.Stream(d.t.Context(), d.spec.Stream)
	if err != nil {
		d.t.Fatal(err)
	}
	if got := stream.CachedInfo().State.LastSeq; got != uint64(d.last) {
		d.t.Fatalf("%d of %d messages were stored", got, d.last)
	}
	d.o.mu.Lock()
	defer d.o.mu.Unlock()
	for _, want := range numbers(1, d.last) {
		if !d.removed[want] && !slices.Contains(d.o.got, want) {
			d.t.Errorf("%s was skipped", want)
		}
	}
	for i, m := range d.o.stored {
		if i > 0 && m.Sequence <= d.o.stored[i-1].Sequence {
			d.t.Errorf("%d was read after %d", m.Sequence, d.o.stored[i-1].Sequence)
		}
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
		r, w, o := tenCommitted(t, s)
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
		r, w, o := tenCommitted(t, s)
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
	r.known.deleted = deletedOf([]uint64{9, 4, 5, 12, 11, 6})
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

// TestGapIsProven asks the leader for the messages of a gap: there are none, there is one, or the leader has none from
// there on.
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
			if got := d.skip(seq); got != want {
				t.Fatalf("seed %d: past %d is %d, want %d; deleted %v", seed, seq, got, want, d)
			}
		}
	}
}
