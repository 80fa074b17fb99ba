package page

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/inspect"
)

// Without a viewer nothing is asked. With five of them, as much as with one; and a while after the last, nothing again.
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
			t.Fatalf("without a viewer it asked %d times", n)
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
		// Each second the fleet; and, every ten, the streams.
		if n := asked.Load(); n < 10 || n > 14 {
			t.Errorf("with five viewers it asked %d times in ten seconds", n)
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
			t.Errorf("after the last viewer it asked %d times", n-before)
		}
		synctest.Wait()
		if len(p.viewers.last) != 0 {
			t.Error("it keeps frames that grow old")
		}
	})
}

// A viewer that does not read costs one frame of each kind, and no one else waits for it.
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

// The server's bounds for short answers do not end a stream of events; the end of the page does.
func TestEventsOutliveTimeouts(t *testing.T) {
	t.Parallel()
	p := newPage(Access{})
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan struct{})
	go func() { p.Run(ctx); close(running) }()
	server := httptest.NewUnstartedServer(p)
	server.Config.ReadTimeout, server.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	server.Start()
	defer server.Close()
	res, err := server.Client().Get(server.URL + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines, states := bufio.NewScanner(res.Body), 0
	lines.Buffer(nil, 1<<20)
	for states < 4 && lines.Scan() { // some seconds
		if strings.HasPrefix(lines.Text(), "event: state") {
			states++
		}
	}
	if states < 4 {
		t.Errorf("the stream ended after %d frames: %v", states, lines.Err())
	}
	stop()
	<-running
	for lines.Scan() {
	}
	if p.viewers.number() != 0 {
		t.Error("a viewer is left")
	}
}
