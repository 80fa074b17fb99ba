package page

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// maxViewers is how many may look at a time.
	maxViewers = 64
	// writeTime is how long a frame may take to a viewer.
	writeTime = 10 * time.Second
	// reconnect is after how many milliseconds a browser comes again.
	reconnect = 2000
)

// viewers are those who look.
type viewers struct {
	came chan struct{} // one slot: there is a viewer

	mu   sync.Mutex // guards what follows
	all  map[*viewer]bool
	last map[string][]byte // the latest frame of each kind, for who comes
}

// A viewer has at most one frame of each kind that it has not got yet.
type viewer struct {
	wake chan struct{} // one slot: there are frames

	mu     sync.Mutex // guards frames
	frames map[string][]byte
}

func newViewers() viewers {
	return viewers{came: make(chan struct{}, 1), all: make(map[*viewer]bool), last: make(map[string][]byte)}
}

// add returns nil where there are too many already.
func (v *viewers) add() *viewer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.all) >= maxViewers {
		return nil
	}
	one := &viewer{wake: make(chan struct{}, 1), frames: maps.Clone(v.last)}
	one.rouse()
	v.all[one] = true
	select {
	case v.came <- struct{}{}:
	default:
	}
	return one
}

func (v *viewers) remove(one *viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.all, one)
}

// number is how many look.
func (v *viewers) number() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.all)
}

// send gives a frame to all, as it is written.
func (v *viewers) send(kind string, data []byte) {
	frame := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last[kind] = frame
	for one := range v.all {
		one.mu.Lock()
		one.frames[kind] = frame
		one.mu.Unlock()
		one.rouse()
	}
}

// forget drops the latest frames: nobody looks, and they grow old.
func (v *viewers) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.last)
}

func (one *viewer) rouse() {
	select {
	case one.wake <- struct{}{}:
	default:
	}
}

func (one *viewer) take() map[string][]byte {
	one.mu.Lock()
	defer one.mu.Unlock()
	frames := one.frames
	one.frames = make(map[string][]byte)
	return frames
}

// events sends a viewer its frames until it goes.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	one := p.viewers.add()
	if one == nil {
		w.Header().Set("Retry-After", "10")
		writeError(w, http.StatusServiceUnavailable, fmt.Sprintf("too many viewers (%d)", maxViewers))
		return
	}
	defer p.viewers.remove(one)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep frames back
	stream := http.NewResponseController(w)
	// The server's bounds are those of short answers. A writer that has none is one of a test.
	_ = stream.SetReadDeadline(time.Time{})
	fmt.Fprintf(w, "retry: %d\n\n", reconnect)
	for {
		select {
		case <-r.Context().Done():
			return
		case <-p.stopped:
			return
		case <-one.wake:
		}
		frames := one.take()
		_ = stream.SetWriteDeadline(time.Now().Add(writeTime))
		for _, kind := range slices.Sorted(maps.Keys(frames)) {
			if _, err := w.Write(frames[kind]); err != nil {
				return
			}
		}
		if stream.Flush() != nil {
			return
		}
	}
}
