package inspect

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestOrderIsWithinItsBound: after any number of requests, the error of an order is within its bound. Without a gap,
// the error is zero.
func TestOrderIsWithinItsBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		cuts := make([]time.Time, 50)
		truth := make([]uint64, len(cuts)+2) // number of messages from each position on
		for n := len(truth) - 2; n >= 0; n-- {
			truth[n] = truth[n+1] + rng.Uint64N(100)*rng.Uint64N(2)*rng.Uint64N(2)
		}
		o := newOrder(&segment{Lane: Lane{Info: new(jetstream.StreamInfo)}, messages: truth[0]}, cuts)
		for {
			for n, e := range o.departures() {
				want := float64(truth[n] - truth[n+1])
				if math.Abs(e.number-want) > e.bound+1e-6 {
					t.Fatalf("slot %d: %v±%v, want %v", n, e.number, e.bound, want)
				}
			}
			gaps := slices.DeleteFunc(o.gaps(), gap.isExact)
			if len(gaps) == 0 {
				break
			}
			middle := gaps[rng.IntN(len(gaps))].middle()
			o.remaining[middle], o.known[middle] = truth[middle], true
		}
		for n, e := range o.departures() {
			if e.bound != 0 || e.number != float64(truth[n]-truth[n+1]) {
				t.Fatalf("without gaps: slot %d is %+v, want %d", n, e, truth[n]-truth[n+1])
			}
		}
	}
}

// TestErrorCovers: the error of a share estimated from a sample is within its bound in 95 of 100 cases, even for rare
// shares and small samples. A sample of all messages has no error.
func TestErrorCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	const tries = 2000
	for _, sampled := range []int{10, 100, 1000} {
		for _, members := range []int{0, 1, 20, 500, 5000, 9999} {
			const population = 10_000
			outside := 0
			for range tries {
				hits := uint64(0)
				for n := range sampled { // draws each message at most once
					if rng.IntN(population-n) < members-int(hits) {
						hits++
					}
				}
				t := make(tally, 2)
				t.addShare(0, population, hits, uint64(sampled))
				if a := t[0].round(); math.Abs(float64(a.Messages)-float64(members)) > float64(a.MaxError) {
					outside++
				}
			}
			if outside > tries/20 {
				t.Errorf("%d of %d messages, %d sampled: the error exceeds its bound in %d of %d cases",
					members, population, sampled, outside, tries)
			}
		}
	}
	exact := make(tally, 2)
	exact.addShare(0, 100, 30, 100)
	if a := exact[0].round(); a != (Amount{Messages: 30}) {
		t.Errorf("a sample of all messages: got %+v, want an exact number", a)
	}
}
