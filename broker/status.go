package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"delaybroker/levels/lane"
)

// Status is what the broker is doing.
type Status struct {
	Ready    bool         `json:"ready"`
	Draining bool         `json:"draining"`
	Lanes    []LaneStatus `json:"lanes"` // by stream; of other instances' lanes only who owns them
}

// LaneStatus is the state of one lane.
type LaneStatus struct {
	Stream    string        `json:"stream"`
	Kind      string        `json:"kind"`
	Level     string        `json:"level,omitempty"`
	Delay     time.Duration `json:"delay"`
	Owned     bool          `json:"owned"`
	Owner     string        `json:"owner,omitempty"` // the instance, when several share the work
	InDoubt   bool          `json:"in_doubt"`        // owned, but not for certain now: nothing in it is delivered until it is
	Live      bool          `json:"live"`            // its consumer is believed alive
	Held      int           `json:"held"`            // messages in memory
	HeldBytes int           `json:"held_bytes"`      // and their bytes
	Span      int           `json:"span"`            // messages between cursor and read
	Full      bool          `json:"full"`            // it reads no further until something arrives
	Delivered uint64        `json:"delivered"`       // since the lane was acquired
}

// gauge is what a worker's loop lets others read.
type gauge struct {
	held, heldBytes, span atomic.Int64
	full                  atomic.Bool
	delivered             atomic.Uint64
}

// report is called by the loop.
func (w *worker) report() {
	w.gauge.held.Store(int64(w.held))
	w.gauge.heldBytes.Store(int64(w.heldBytes))
	w.gauge.span.Store(int64(w.cursor.Span()))
	w.gauge.full.Store(w.full())
}

// Status looks at all lanes. It takes no lock that a loop holds.
func (b *Broker) Status() Status {
	s := Status{Draining: b.draining.Load()}
	select {
	case <-b.ready:
		s.Ready = true
	default:
	}
	for _, w := range b.enlisted() {
		s.Lanes = append(s.Lanes, LaneStatus{
			Stream: w.lane.Stream, Kind: string(w.lane.Kind), Level: w.lane.Name, Delay: w.lane.Delay,
			Owned: true, Owner: b.cfg.Owners.Owner(w.lane.Stream), InDoubt: !w.lease.Held(), Live: w.reader.Live() != 0,
			Held: int(w.gauge.held.Load()), HeldBytes: int(w.gauge.heldBytes.Load()), Span: int(w.gauge.span.Load()),
			Full: w.gauge.full.Load(), Delivered: w.gauge.delivered.Load(),
		})
	}
	for _, l := range b.elsewhere(s.Lanes) {
		s.Lanes = append(s.Lanes, LaneStatus{
			Stream: l.Stream, Kind: string(l.Kind), Level: l.Name, Delay: l.Delay, Owner: b.cfg.Owners.Owner(l.Stream),
		})
	}
	slices.SortFunc(s.Lanes, func(a, b LaneStatus) int { return strings.Compare(a.Stream, b.Stream) })
	return s
}

// elsewhere are the lanes that others own, as far as that is known.
func (b *Broker) elsewhere(here []LaneStatus) []lane.Spec {
	b.mu.Lock()
	all := slices.Clone(b.lanes)
	b.mu.Unlock()
	return slices.DeleteFunc(all, func(l lane.Spec) bool {
		return b.cfg.Owners.Owner(l.Stream) == "" || slices.ContainsFunc(here, func(s LaneStatus) bool { return s.Stream == l.Stream })
	})
}

// Alive returns nil when the loop of every lane has turned before ctx ended. It says nothing about NATS.
func (b *Broker) Alive(ctx context.Context) error {
	var stuck []error
	for _, w := range b.enlisted() {
		select {
		case w.ping <- struct{}{}:
		case <-w.gone:
		case <-ctx.Done():
			stuck = append(stuck, fmt.Errorf("the loop of %s does not turn", w.lane.Stream))
		}
	}
	return errors.Join(stuck...)
}

func (b *Broker) enlist(w *worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.workers = append(b.workers, w)
}

func (b *Broker) dismiss(w *worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.workers = slices.DeleteFunc(b.workers, func(other *worker) bool { return other == w })
}

func (b *Broker) enlisted() []*worker {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.workers)
}
