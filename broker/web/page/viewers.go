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
	// writeTimeout is the timeout for sending frames to a viewer.
	writeTimeout = 10 * time.Second
	// reconnectDelay is the delay after which a browser reconnects, in milliseconds.
	reconnectDelay = 2000
)

type viewers struct {
	arrivals chan struct{} // capacity 1: signals a new viewer

	mu           sync.Mutex // guards the fields below
	open         map[*viewer]bool
	latestFrames map[string][]byte // the latest frame of each kind, for new viewers
}

// A viewer is an open event stream. It has at most one unsent frame of each kind.
type viewer struct {
	wake chan struct{} // capacity 1: signals unsent frames

	mu     sync.Mutex        // guards frames
	frames map[string][]byte // the unsent frames, by kind
}

func newViewers() viewers {
	return viewers{arrivals: make(chan struct{}, 1), open: make(map[*viewer]bool), latestFrames: make(map[string][]byte)}
}

// add returns a new viewer, or nil if there are maxViewers already. The caller must remove the viewer.
func (v *viewers) add() *viewer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.open) >= maxViewers {
		return nil
	}
	client := &viewer{wake: make(chan struct{}, 1), frames: maps.Clone(v.latestFrames)}
	signal(client.wake)
	v.open[client] = true
	signal(v.arrivals)
	return client
}

func (v *viewers) remove(client *viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, client)
}

func (v *viewers) number() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open)
}

// send gives an encoded frame to all viewers. It does not wait for a viewer.
func (v *viewers) send(kind string, data []byte) {
	frame := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.latestFrames[kind] = frame
	for receiver := range v.open {
		receiver.mu.Lock()
		receiver.frames[kind] = frame
		receiver.mu.Unlock()
		signal(receiver.wake)
	}
}

// dropFrames drops the latest frames. A later viewer must not get old frames.
func (v *viewers) dropFrames() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.latestFrames)
}

// signal sends on a channel of capacity 1, unless the channel already has a value.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (v *viewer) take() map[string][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	frames := v.frames
	v.frames = make(map[string][]byte)
	return frames
}

// events sends frames to a viewer until the viewer disconnects or Run ends.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	v := p.viewers.add()
	if v == nil {
		w.Header().Set("Retry-After", "10")
		writeError(w, http.StatusServiceUnavailable,
			fmt.Sprintf("the page has %d viewers, which is the maximum: try again later", maxViewers))
		return
	}
	defer p.viewers.remove(v)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise nginx buffers frames
	stream := http.NewResponseController(w)
	// The server's deadlines are for short responses. Setting a deadline fails only for the writer of a test.
	_ = stream.SetReadDeadline(time.Time{})
	fmt.Fprintf(w, "retry: %d\n\n", reconnectDelay)
	for {
		select {
		case <-r.Context().Done():
			return
		case <-p.stopped:
			return
		case <-v.wake:
		}
		frames := v.take()
		_ = stream.SetWriteDeadline(time.Now().Add(writeTimeout))
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
