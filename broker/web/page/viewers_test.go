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

// TestOneProducerForAll: without a viewer the page sends no request. Five viewers cost as much as one. Some seconds
// after the last viewer has left, requests end.
func TestOneProducerForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(Access{})
		var asked atomic.Int64
		p.cfg.Open = func(context.Context) (*inspect.Inspector, error) {
			asked.Add(1)
			return nil, errNoNATS
		}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go p.Run(ctx)
		time.Sleep(time.Hour)
		if n := asked.Load(); n != 0 {
			t.Fatalf("without a viewer the page sent %d requests", n)
		}
		frames := make([]string, 5) // the last of each
		var all []*viewer
		for n := range frames {
			one := p.viewers.add()
			all = append(all, one)
			go func() {
				for {
					select {
					case <-one.wake:
						if state := one.take()["state"]; len(state) > 0 {
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
		// One request a second goes to the instances, and one in ten seconds to the streams.
		if n := asked.Load(); n < 10 || n > 14 {
			t.Errorf("with five viewers the page sent %d requests in ten seconds", n)
		}
		for n := range frames {
			if frames[n] == "" || frames[n] != frames[0] {
				t.Errorf("viewer %d was shown %q last, another %q", n, frames[n], frames[0])
			}
			p.viewers.remove(all[n])
		}
		time.Sleep(linger + 2*time.Second)
		before := asked.Load()
		time.Sleep(time.Hour)
		if n := asked.Load(); n != before {
			t.Errorf("after the last viewer the page sent %d requests", n-before)
		}
		synctest.Wait()
		if len(p.viewers.last) != 0 {
			t.Error("the page keeps old frames")
		}
	})
}

// TestSlowViewerMissesFrames: a viewer that does not read keeps one frame of each kind, and does not delay the others.
func TestSlowViewerMissesFrames(t *testing.T) {
	v := newViewers()
	slow, quick := v.add(), v.add()
	for n := range 1000 {
		v.send("state", fmt.Append(nil, n))
		if got, want := string(quick.take()["state"]), fmt.Sprintf("event: state\ndata: %d\n\n", n); got != want {
			t.Fatalf("got frame %q, want %q", got, want)
		}
	}
	if got := slow.take(); len(got) != 1 || string(got["state"]) != "event: state\ndata: 999\n\n" {
		t.Errorf("got %q, want the latest frame", got)
	}
}

func TestViewersAreBounded(t *testing.T) {
	p := newPage(Access{})
	for range maxViewers {
		if p.viewers.add() == nil {
			t.Fatal("refused too early")
		}
	}
	if w := call(p, "GET", "/api/events", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("one more: got %d, want 503", w.Code)
	}
}

// TestEventsOutliveTimeouts: the server's timeouts for short responses do not end a stream of events, nor does the
// timeout of one frame. The end of the page does.
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
		running.Go(func() { _ = server.Serve(conns) }) // it always returns an error
		dial := func(context.Context, string, string) (net.Conn, error) { return near, nil }
		res, err := (&http.Client{Transport: &http.Transport{DialContext: dial}}).Get("http://127.0.0.1/api/events")
		if err != nil {
			t.Fatal(err)
		}
		lines, states := bufio.NewScanner(res.Body), 0
		lines.Buffer(nil, 1<<20)
		const want = 2 * int(writeTime/stateInterval)
		for states < want && lines.Scan() {
			if strings.HasPrefix(lines.Text(), "event: state") {
				states++
			}
		}
		if states < want {
			t.Errorf("the stream ended after %d frames: %v", states, lines.Err())
		}
		stop()
		for lines.Scan() {
		}
		if p.viewers.number() != 0 {
			t.Error("a viewer is left")
		}
		_ = res.Body.Close()
		_ = server.Close()
		running.Wait()
	})
}

// pipeListener accepts the connections of a channel: those of net.Pipe work under fake time.
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
