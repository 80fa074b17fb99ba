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
	// maxViewers is the maximum number of concurrent viewers.
	maxViewers = 64
	// writeTime is the timeout of writing a frame to a viewer.
	writeTime = 10 * time.Second
	// reconnect is the delay after which a browser reconnects, in milliseconds.
	reconnect = 2000
)

// viewers are the open event streams.
type viewers struct {
	came chan struct{} // capacity 1: signals a new viewer

	mu   sync.Mutex // guards the fields below
	all  map[*viewer]bool
	last map[string][]byte // the latest frame of each kind, for new viewers
}

// A viewer has at most one unsent frame of each kind.
type viewer struct {
	wake chan struct{} // capacity 1: signals that there are frames

	mu     sync.Mutex // guards frames
	frames map[string][]byte
}

func newViewers() viewers {
	return viewers{came: make(chan struct{}, 1), all: make(map[*viewer]bool), last: make(map[string][]byte)}
}

// add returns a new viewer, or nil if there are maxViewers already.
func (v *viewers) add() *viewer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.all) >= maxViewers {
		return nil
	}
	one := &viewer{wake: make(chan struct{}, 1), frames: maps.Clone(v.last)}
	signal(one.wake)
	v.all[one] = true
	signal(v.came)
	return one
}

func (v *viewers) remove(one *viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.all, one)
}

// number returns the number of viewers.
func (v *viewers) number() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.all)
}

// send passes an encoded frame to all viewers.
func (v *viewers) send(kind string, data []byte) {
	frame := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last[kind] = frame
	for one := range v.all {
		one.mu.Lock()
		one.frames[kind] = frame
		one.mu.Unlock()
		signal(one.wake)
	}
}

// forget drops the latest frames, which would become stale without viewers.
func (v *viewers) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.last)
}

// signal sends on a channel of capacity 1, unless a value is already in it.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
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

// events sends frames to a viewer until it disconnects.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	one := p.viewers.add()
	if one == nil {
		w.Header().Set("Retry-After", "10")
		writeError(w, http.StatusServiceUnavailable, fmt.Sprintf("too many viewers (%d)", maxViewers))
		return
	}
	defer p.viewers.remove(one)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer frames
	stream := http.NewResponseController(w)
	// The server's deadlines are for short responses. Only the writer of a test has no deadlines.
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
