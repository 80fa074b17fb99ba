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
	counts  []*stats.LaneCounts // one element for each lane for which countOf was called
}

// countOf returns the counts of a lane. It creates them at the first call for the lane.
func (r *roster) countOf(l streams.Spec) *stats.LaneCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.counts {
		if c.Spec.Stream == l.Stream {
			return c
		}
	}
	c := &stats.LaneCounts{Spec: l}
	r.counts = append(r.counts, c)
	return c
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
