package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"delaybroker/broker/fault"
	"delaybroker/broker/stats"
)

type fakeEngine struct {
	ready  chan struct{}
	alive  func(ctx context.Context) error
	status stats.Status
}

func (e fakeEngine) Ready() <-chan struct{}          { return e.ready }
func (e fakeEngine) Alive(ctx context.Context) error { return e.alive(ctx) }
func (e fakeEngine) Status() stats.Status            { return e.status }

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// newSource returns the engine and the other sources of a healthy broker.
func newSource() (fakeEngine, Source) {
	e := fakeEngine{
		ready: closedChannel(),
		alive: func(context.Context) error { return nil },
		status: stats.Status{Ready: true, Lanes: []stats.LaneStatus{
			{Stream: "DELAY_1s", Owned: true, Live: true}, {Stream: "DELAY_5s", Owned: true, Live: true},
		}},
	}
	s := Source{
		LinkFaults: func() map[string]fault.Fault { return nil },
		Stopping:   make(chan struct{}), Durability: new(atomic.Pointer[string]),
	}
	return e, s
}

func probe(e fakeEngine, s Source, method, path string) *httptest.ResponseRecorder {
	s.Engine = e
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestProbes(t *testing.T) {
	for _, test := range []struct {
		name         string
		fault        func(*fakeEngine, *Source)
		alive, ready int    // the status codes of /healthz and /readyz
		failed       string // name and detail of the failed check
	}{
		{"healthy", func(*fakeEngine, *Source) {}, 200, 200, ""},
		{"stuck loop", func(e *fakeEngine, _ *Source) {
			e.alive = func(context.Context) error { return errors.New("the loop of DELAY_1s is stuck") }
		}, 503, 200, "engine: the loop of DELAY_1s is stuck"},
		{"not started", func(e *fakeEngine, _ *Source) { e.ready = make(chan struct{}) }, 200, 503,
			"started: not all lanes are read yet"},
		{"disconnected", func(_ *fakeEngine, s *Source) {
			s.LinkFaults = func() map[string]fault.Fault {
				return map[string]fault.Fault{"control": {Detail: "not connected"}}
			}
		}, 200, 503, "nats: not connected: control"},
		{"lane not read", func(e *fakeEngine, _ *Source) { e.status.Lanes[1].Live = false }, 200, 503,
			"lanes: no longer read: DELAY_5s"},
		{"ownership uncertain", func(e *fakeEngine, _ *Source) { e.status.Lanes[1].InDoubt = true }, 200, 503,
			"lanes: no delivery while their ownership is uncertain: DELAY_5s"},
		{"lane of another instance", func(e *fakeEngine, _ *Source) { e.status.Lanes[1] = stats.LaneStatus{} }, 200, 200,
			""},
		{"messages wait", func(e *fakeEngine, _ *Source) {
			e.status.Lanes[1].Fault = &fault.Fault{Cause: fault.NoRoom, Detail: "the disk is full"}
		}, 200, 503, "lanes: messages wait in DELAY_5s: no room: the disk is full"},
		{"draining", func(e *fakeEngine, _ *Source) { e.status.Draining = true }, 200, 503, "serving: draining"},
		{"stopping", func(_ *fakeEngine, s *Source) { s.Stopping = closedChannel() }, 200, 503, "serving: draining"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, s := newSource()
			test.fault(&e, &s)
			for path, want := range map[string]int{"/healthz": test.alive, "/livez": test.alive, "/readyz": test.ready} {
				w := probe(e, s, "GET", path)
				if got := w.Code; got != want {
					t.Errorf("%s: got %d, want %d", path, got, want)
				}
				var body struct {
					Status string
					Checks []stats.Check
				}
				if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
					t.Fatal(err)
				}
				if got, want := body.Status == "ok", want == 200; got != want {
					t.Errorf("%s: got status %q with %d", path, body.Status, w.Code)
				}
				var failed string
				for _, c := range body.Checks {
					if !c.OK {
						failed += c.Name + ": " + c.Detail
					}
				}
				if want == 503 && failed != test.failed {
					t.Errorf("%s: got %q, want %q", path, failed, test.failed)
				}
			}
		})
	}
}

// A stuck loop delays the response by at most aliveTimeout.
func TestAliveTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s := newSource()
		e.alive = func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("stuck")
		}
		if got, want := probe(e, s, "GET", "/healthz").Code, 503; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	})
}

// The probes accept only the methods GET and HEAD.
func TestMethodsOfProbes(t *testing.T) {
	e, s := newSource()
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/status", "/metrics"} {
		for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "PUT": 405, "DELETE": 405} {
			if got := probe(e, s, method, path).Code; got != want {
				t.Errorf("%s %s: got %d, want %d", method, path, got, want)
			}
		}
	}
	if got, want := probe(e, s, "GET", "/").Code, 404; got != want {
		t.Errorf("/: got %d, want %d", got, want)
	}
}

func TestStatus(t *testing.T) {
	e, s := newSource()
	w := probe(e, s, "GET", "/status")
	var got stats.Status
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Lanes) != 2 || got.Lanes[0] != e.status.Lanes[0] {
		t.Errorf("got %+v, want %+v", got, e.status)
	}
	if got, want := w.Header().Get("Content-Type"), "application/json"; got != want {
		t.Errorf("content type: got %q, want %q", got, want)
	}
}

func TestServerRefusesLargeHeaders(t *testing.T) {
	e, s := newSource()
	s.Engine = e
	server := httptest.NewUnstartedServer(nil)
	server.Config = NewServer(slog.New(slog.DiscardHandler))
	server.Config.Handler = s.Handler()
	server.Start()
	defer server.Close()
	for size, want := range map[int]int{100: http.StatusOK, 64 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		req, err := http.NewRequest("GET", server.URL+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Long", strings.Repeat("x", size))
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.StatusCode; got != want {
			t.Errorf("header of %d bytes: got %d, want %d", size, got, want)
		}
	}
}

// Before the first Set, a Switch answers that the process is alive, and not ready.
func TestSwitchBeforeBroker(t *testing.T) {
	var s Switch
	for path, want := range map[string]int{
		"/healthz": http.StatusOK, "/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable,
		"/status": http.StatusServiceUnavailable,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
}
