package engine

import (
	"slices"
	"sync"

	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

// roster holds the workers that run now, and, for each lane, the counts of its moves and deliveries. The zero roster is
// ready to use.
type roster struct {
	mu      sync.Mutex // guards the fields below
	workers []*worker
	counts  []*stats.LaneCounts // of each lane for which countOf was called, in the order of streams.CompareLanes
}

// countOf returns the counts of a lane. It creates them at the first call for the lane.
func (r *roster) countOf(l streams.Spec) *stats.LaneCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearchFunc(r.counts, l, func(c *stats.LaneCounts, l streams.Spec) int {
		return streams.CompareLanes(c.Spec, l)
	})
	if !found {
		r.counts = slices.Insert(r.counts, at, &stats.LaneCounts{Spec: l})
	}
	return r.counts[at]
}

func (r *roster) allCounts() []*stats.LaneCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.counts)
}

func (r *roster) add(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers = append(r.workers, w)
}

func (r *roster) remove(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers = slices.DeleteFunc(r.workers, func(other *worker) bool { return other == w })
}

func (r *roster) running() []*worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.workers)
}
