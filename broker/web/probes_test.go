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

	"delaybroker/broker/stats"
)

var quiet = slog.New(slog.DiscardHandler)

// state is an engine in a state that the test sets.
type state struct {
	ready  chan struct{}
	alive  func(ctx context.Context) error
	status stats.Status
}

func (s state) Ready() <-chan struct{}          { return s.ready }
func (s state) Alive(ctx context.Context) error { return s.alive(ctx) }
func (s state) Status() stats.Status            { return s.status }

// closed returns a closed channel, which stands for an event that has occurred.
func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// good returns a healthy broker. Each test breaks one part.
func good() (state, Source) {
	ours := stats.Ownership{Owned: true, Live: true}
	s := state{
		ready: closed(),
		alive: func(context.Context) error { return nil },
		status: stats.Status{Ready: true, Lanes: []stats.LaneStatus{
			{Stream: "DELAY_1s", Ownership: ours}, {Stream: "DELAY_5s", Ownership: ours},
		}},
	}
	h := Source{
		Down:     func() map[string]string { return nil },
		Stopping: make(chan struct{}), Durability: new(atomic.Pointer[string]),
	}
	return s, h
}

func probe(s state, h Source, method, path string) *httptest.ResponseRecorder {
	h.Engine = s
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestProbes(t *testing.T) {
	for _, test := range []struct {
		name         string
		spoil        func(*state, *Source)
		alive, ready int
		failed       string // name and detail of the failed check
	}{
		{"good", func(*state, *Source) {}, 200, 200, ""},
		{"loop stuck", func(s *state, _ *Source) {
			s.alive = func(context.Context) error { return errors.New("the loop of DELAY_1s does not turn") }
		}, 503, 200, "engine: the loop of DELAY_1s does not turn"},
		{"not started", func(s *state, _ *Source) { s.ready = make(chan struct{}) }, 200, 503,
			"started: not all lanes are read yet"},
		{"disconnected", func(_ *state, h *Source) {
			h.Down = func() map[string]string { return map[string]string{"control": "not connected"} }
		}, 200, 503, "nats: not connected: control"},
		{"lane lost", func(s *state, _ *Source) { s.status.Lanes[1].Live = false }, 200, 503,
			"lanes: no longer read: DELAY_5s"},
		{"lane in doubt", func(s *state, _ *Source) { s.status.Lanes[1].InDoubt = true }, 200, 503,
			"lanes: no delivery while their ownership is uncertain: DELAY_5s"},
		{"lane of another", func(s *state, _ *Source) { s.status.Lanes[1] = stats.LaneStatus{} }, 200, 200, ""},
		{"draining", func(s *state, _ *Source) { s.status.Draining = true }, 200, 503, "serving: draining"},
		{"stop asked for", func(_ *state, h *Source) { h.Stopping = closed() }, 200, 503, "serving: draining"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, h := good()
			test.spoil(&s, &h)
			for path, want := range map[string]int{"/healthz": test.alive, "/livez": test.alive, "/readyz": test.ready} {
				w := probe(s, h, "GET", path)
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

// A blocked loop delays the response by aliveTimeout at most.
func TestAliveIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := good()
		s.alive = func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("stuck")
		}
		if got, want := probe(s, h, "GET", "/healthz").Code, 503; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	})
}

func TestProbesChangeNothing(t *testing.T) {
	s, h := good()
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/status", "/metrics"} {
		for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "PUT": 405, "DELETE": 405} {
			if got := probe(s, h, method, path).Code; got != want {
				t.Errorf("%s %s: got %d, want %d", method, path, got, want)
			}
		}
	}
	if got, want := probe(s, h, "GET", "/").Code, 404; got != want {
		t.Errorf("/: got %d, want %d", got, want)
	}
}

func TestStatus(t *testing.T) {
	s, h := good()
	w := probe(s, h, "GET", "/status")
	var got stats.Status
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Lanes) != 2 || got.Lanes[0] != s.status.Lanes[0] {
		t.Errorf("got %+v, want %+v", got, s.status)
	}
	if got, want := w.Header().Get("Content-Type"), "application/json"; got != want {
		t.Errorf("content type: got %q, want %q", got, want)
	}
}

func TestWebRefusesLargeHeaders(t *testing.T) {
	s, h := good()
	h.Engine = s
	server := httptest.NewUnstartedServer(nil)
	server.Config = NewServer(quiet)
	server.Config.Handler = h.Handler()
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
