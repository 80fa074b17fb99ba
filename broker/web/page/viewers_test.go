package page

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/inspect"
)

// TestOneProducerForAll: without a viewer, the page sends no request. With five viewers, it sends as many requests as
// with one. It stops sending requests shortly after the last viewer has left.
func TestOneProducerForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(Access{})
		var requests atomic.Int64
		p.cfg.Open = func(context.Context) (*inspect.Inspector, error) {
			requests.Add(1)
			return nil, errNoNATS
		}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go p.Run(ctx)
		time.Sleep(time.Hour)
		if n := requests.Load(); n != 0 {
			t.Fatalf("without a viewer, the page sent %d requests, want 0", n)
		}
		frames := make([]string, 5) // the last state of each viewer
		var all []*viewer
		for n := range frames {
			v := p.viewers.add()
			all = append(all, v)
			go func() {
				for {
					select {
					case <-v.wake:
						if state := v.take()["state"]; len(state) > 0 {
							frames[n] = string(state)
						}
					case <-ctx.Done():
						return
					}
				}
			}()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		// One request per second is to the instances. A few others are to the streams.
		if n := requests.Load(); n < 10 || n > 14 {
			t.Errorf("with five viewers, the page sent %d requests in ten seconds, want 10 to 14", n)
		}
		for n := range frames {
			if frames[n] == "" || frames[n] != frames[0] {
				t.Errorf("viewer %d: got the last state %q, want %q", n, frames[n], frames[0])
			}
			p.viewers.remove(all[n])
		}
		time.Sleep(idleTimeout + 2*time.Second)
		before := requests.Load()
		time.Sleep(time.Hour)
		if n := requests.Load(); n != before {
			t.Errorf("after the last viewer has left, the page sent %d requests, want 0", n-before)
		}
		synctest.Wait()
		if len(p.viewers.latestFrames) != 0 {
			t.Errorf("got %d old frames, want none", len(p.viewers.latestFrames))
		}
	})
}

// TestSlowViewerMissesFrames: a viewer that takes no frames has only the latest frame of each kind, and does not delay
// other viewers.
func TestSlowViewerMissesFrames(t *testing.T) {
	v := newViewers()
	slow, fast := v.add(), v.add()
	for n := range 1000 {
		v.send("state", fmt.Append(nil, n))
		if got, want := string(fast.take()["state"]), fmt.Sprintf("event: state\ndata: %d\n\n", n); got != want {
			t.Fatalf("got frame %q, want %q", got, want)
		}
	}
	if got := slow.take(); len(got) != 1 || string(got["state"]) != "event: state\ndata: 999\n\n" {
		t.Errorf("got %q, want only the latest frame", got)
	}
}

func TestMaxViewers(t *testing.T) {
	p := newPage(Access{})
	for range maxViewers {
		if p.viewers.add() == nil {
			t.Fatalf("got %d viewers, want %d", p.viewers.number(), maxViewers)
		}
	}
	if w := call(p, "GET", "/api/events", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("one more viewer: got %d, want 503", w.Code)
	}
}

// TestEventsOutliveTimeouts: neither the server's timeouts nor the timeout for a frame ends an event stream. The end of
// Run ends it.
func TestEventsOutliveTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(Access{})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.Run(ctx) })
		near, far := net.Pipe()
		conns := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		conns.conns <- far
		server := &http.Server{Handler: p, ReadTimeout: 200 * time.Millisecond, WriteTimeout: 200 * time.Millisecond}
		running.Go(func() { _ = server.Serve(conns) }) // Serve always returns an error
		dial := func(context.Context, string, string) (net.Conn, error) { return near, nil }
		res, err := (&http.Client{Transport: &http.Transport{DialContext: dial}}).Get("http://127.0.0.1/api/events")
		if err != nil {
			t.Fatal(err)
		}
		lines, states := bufio.NewScanner(res.Body), 0
		lines.Buffer(nil, 1<<20)
		const want = 2 * int(writeTimeout/stateInterval)
		for states < want && lines.Scan() {
			if strings.HasPrefix(lines.Text(), "event: state") {
				states++
			}
		}
		if states < want {
			t.Errorf("the event stream ended after %d frames: %v", states, lines.Err())
		}
		stop()
		for lines.Scan() {
		}
		if p.viewers.number() != 0 {
			t.Errorf("got %d viewers after the end of Run, want 0", p.viewers.number())
		}
		_ = res.Body.Close()
		_ = server.Close()
		running.Wait()
	})
}

// pipeListener accepts the connections of a channel. The connections are those of net.Pipe, which work under fake time.
type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.IPAddr{} }
