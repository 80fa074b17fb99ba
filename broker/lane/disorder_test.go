package lane

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
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

// TestDisorderSkipsNothing publishes, commits, deletes in the middle, loses messages and heartbeats on the wire,
// deletes or recreates the consumer, and restarts the server, in random order. The owner must read, once and in order,
// every message that was not deleted. LANE_SEEDS is the number of random orders; the default is 10.
func TestDisorderSkipsNothing(t *testing.T) {
	natstest.SkipShort(t)
	seeds, err := strconv.ParseUint(cmp.Or(os.Getenv("LANE_SEEDS"), "10"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				d := newDisorder(t, s, seed)
				for range 60 {
					d.step()
					time.Sleep(time.Duration(d.rnd.IntN(3000)) * time.Millisecond)
				}
				d.lossPercent.Store(0)
				d.burst(1)
				time.Sleep(2 * time.Hour)
				d.check()
			})
		})
	}
}

// disorder is a rig that causes random events.
type disorder struct {
	*rig
	w       *wire
	o       *owner
	rnd     *rand.Rand
	last    int             // the last message published
	removed map[string]bool // messages that were deleted in the middle

	// Only the goroutine of the wire uses the fields below, except for lossPercent and hide.
	loss           *rand.Rand
	highest        map[string]int // the highest consumer sequence that each consumer has shown
	lossPercent    atomic.Int64   // percentage of messages from the server that get lost
	losesRecreated atomic.Bool    // messages of a recreated consumer get lost until its count has reached the old one
}

func newDisorder(t *testing.T, s *natstest.Server, seed uint64) *disorder {
	t.Helper()
	d := &disorder{
		rig: newRig(t, s), w: &wire{server: s}, removed: make(map[string]bool), highest: make(map[string]int),
		rnd: rand.New(rand.NewPCG(seed, 1)), loss: rand.New(rand.NewPCG(seed, 2)), // one for each goroutine
	}
	d.w.set(d.lose)
	d.o = d.readOver(d.w)
	return d
}

func (d *disorder) lose(head, body string) bool {
	if !isStored(head) {
		return strings.Contains(body, "Idle Heartbeat") && d.loss.Int64N(100) < d.lossPercent.Load()
	}
	reply := strings.Split(head[strings.Index(head, "$JS.ACK."):], ".")
	consumer, number := reply[3], atoi(reply[6])
	if d.losesRecreated.Load() && number <= d.highest[consumer] {
		return true
	}
	d.highest[consumer] = number
	return d.loss.Int64N(100) < d.lossPercent.Load()
}

// step is one random event.
func (d *disorder) step() {
	switch d.rnd.IntN(8) {
	case 0, 1:
		d.burst(d.rnd.IntN(300))
	case 2: // the owner commits the messages that it has read
		synctest.Wait()
		if arrived := d.arrived(); arrived > 0 {
			d.purge(jetstream.WithPurgeSequence(arrived + 1))
		}
	case 3: // another client deletes messages
		for range d.rnd.IntN(20) {
			seq := uint64(1 + d.rnd.IntN(max(1, d.last)))
			if err := d.o.api.Delete(d.t.Context(), d.spec.Stream, seq); err == nil {
				d.removed[fmt.Sprint(seq)] = true
			}
		}
	case 4:
		d.losesRecreated.Store(d.rnd.IntN(3) > 0)
		d.recreateConsumer(d.w)
		d.o.Probe()
	case 5:
		d.deleteConsumers()
	case 6:
		d.lossPercent.Store(d.rnd.Int64N(30))
	case 7:
		d.lossPercent.Store(0)
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

// arrived returns the sequence of the last message that the owner took, or zero if it took none.
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
		d.t.Fatalf("%d messages were stored, want %d", got, d.last)
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
