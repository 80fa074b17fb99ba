package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"delaybroker/broker/fault"
	"delaybroker/broker/lease"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

const (
	// watchInterval is the interval at which watchLoops asks each loop whether it is alive.
	watchInterval = time.Second
	// maxUnworked is the time without a working loop after which a lane keeps its instance from being useful.
	maxUnworked = 5 * time.Second
)

// watch knows when the loop of each lane last responded, while this instance is active.
type watch struct {
	mu         sync.Mutex           // guards the fields below
	responded  map[string]time.Time // by stream; empty while this instance is not active
	logged     map[string]bool      // the log says that the lane has no working loop
	pausesPing chan struct{}        // received by the loop of the paused messages
}

// begin starts the watch of these lanes.
func (w *watch) begin(lanes []streams.Spec, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.responded, w.logged = make(map[string]time.Time), make(map[string]bool)
	for _, l := range lanes {
		w.responded[l.Stream] = now
	}
}

// unworked returns the time for which a lane has had no loop that responds. It is zero if this instance is not active,
// and while the loop responds at each request.
func (w *watch) unworked(stream string, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, active := w.responded[stream]
	if silent := now.Sub(last); active && silent > 2*watchInterval {
		return silent
	}
	return 0
}

// watchLoops asks each loop at intervals whether it is alive, until ctx ends. It wakes all loops each time that the
// lease may be held again.
func (e *Engine) watchLoops(ctx context.Context, held lease.Lease) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	logged := make(map[fault.Cause]*faultLog)
	for {
		select {
		case <-ctx.Done():
			return
		case <-held.Resumed():
			for _, w := range e.roster.running() {
				w.wake()
			}
		case <-ticker.C:
			e.askLoops(ctx)
			e.logUnworked(time.Now())
			e.logFaults(logged, time.Now())
		}
	}
}

// askLoops asks all loops whether they are alive, and waits for at most half a watchInterval.
func (e *Engine) askLoops(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchInterval/2)
	defer cancel()
	alive := e.ping(ctx)
	e.watch.mu.Lock()
	defer e.watch.mu.Unlock()
	for stream, ok := range alive {
		if ok {
			e.watch.responded[stream] = time.Now()
		}
	}
}

// ping asks all loops whether they are alive. It returns, by stream, whether all loops of the stream have responded
// before ctx ended. The stream of paused messages has several.
func (e *Engine) ping(ctx context.Context) (alive map[string]bool) {
	var mu sync.Mutex // guards alive
	alive = make(map[string]bool)
	var asking sync.WaitGroup
	ask := func(stream string, ping chan struct{}, ended <-chan struct{}) {
		alive[stream] = true
		select {
		case ping <- struct{}{}: // the loop sleeps
			return
		default:
		}
		asking.Go(func() { // concurrently: one blocked loop must not use up the time for the others
			select {
			case ping <- struct{}{}:
			case <-ended:
			case <-ctx.Done():
				mu.Lock()
				defer mu.Unlock()
				alive[stream] = false
			}
		})
	}
	mu.Lock()
	for _, w := range e.roster.running() {
		ask(w.lane.Stream, w.ping, w.ended)
	}
	if e.ownsPaused.Load() {
		ask(e.names.PausedStream(), e.watch.pausesPing, nil)
	}
	mu.Unlock()
	asking.Wait()
	if !e.ownsPaused.Load() { // the loop of the pauses has ended meanwhile
		delete(alive, e.names.PausedStream())
	}
	return alive
}

// logUnworked logs once that a lane has had no working loop for stats.MaxUnworked.
func (e *Engine) logUnworked(now time.Time) {
	e.watch.mu.Lock()
	defer e.watch.mu.Unlock()
	for stream, last := range e.watch.responded {
		switch silent := now.Sub(last); {
		case silent < watchInterval:
			e.watch.logged[stream] = false
		case silent >= stats.MaxUnworked && !e.watch.logged[stream]:
			e.watch.logged[stream] = true
			e.log.Error("a lane has no working loop; its messages wait. Restart this instance if the lane does not recover",
				"stream", stream, "for", silent.Round(time.Second))
		}
	}
}

// Problem returns an error that names the lanes whose loops have not responded for maxUnworked, or nil.
func (e *Engine) Problem(now time.Time) error {
	e.watch.mu.Lock()
	defer e.watch.mu.Unlock()
	var stuck []string
	for stream, last := range e.watch.responded {
		if now.Sub(last) >= maxUnworked {
			stuck = append(stuck, stream)
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	slices.Sort(stuck)
	return fmt.Errorf("no working loop of %v", stuck)
}
