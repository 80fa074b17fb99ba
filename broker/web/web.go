package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"delaybroker/broker/doctor"
	"delaybroker/broker/stats"
)

const (
	// closeTimeout is the time that Close gives responses in progress.
	closeTimeout = time.Second
	// getTimeout is the timeout of Get. It is longer than aliveTimeout, because the handler of /healthz may take
	// aliveTimeout.
	getTimeout = aliveTimeout + 2*time.Second
)

// NewServer returns an HTTP server without a handler. Its limits bound the time and the memory that a client's
// connection can use.
func NewServer(log *slog.Logger) *http.Server {
	return &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      aliveTimeout + 5*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// A Switch passes requests to the handler of the present broker. Before the first Set, the process is alive, and
// not ready.
type Switch struct{ handler atomic.Pointer[http.Handler] }

// Set replaces the handler. It may be called while requests are served.
func (s *Switch) Set(h http.Handler) { s.handler.Store(&h) }

// ServeHTTP implements http.Handler.
func (s *Switch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := s.handler.Load()
	if h == nil {
		checks := []stats.Check{check("process", "")}
		if r.URL.Path != "/healthz" && r.URL.Path != "/livez" {
			checks = append(checks, check("started", "the broker starts"))
		}
		writeChecks(w, checks)
		return
	}
	(*h).ServeHTTP(w, r)
}

// Serve answers requests until Close is called. If the server fails, Serve calls fail with the error.
func Serve(web *http.Server, listener net.Listener, fail context.CancelCauseFunc) {
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		fail(fmt.Errorf("serve HTTP: %w", err))
	}
}

// Close stops the server. Responses in progress have closeTimeout to finish.
func Close(web *http.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		log.Debug("the HTTP server cuts off responses in progress", "err", err)
		web.Close()
	}
}

// Get requests the URL of a broker's probe: /healthz, /livez or /readyz. It returns an error if it receives no answer
// in the broker's format. A failed check is not an error of Get.
func Get(ctx context.Context, url string) (ProbeBody, error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ProbeBody{}, err
	}
	// The default client would use a proxy from the environment.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return ProbeBody{}, errors.Unwrap(err) // without the method and the URL, which url.Error adds
	}
	defer response.Body.Close()
	var a ProbeBody
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil || len(a.Checks) == 0 {
		return ProbeBody{}, fmt.Errorf("the response %q is not in the broker's format: does another program listen there?",
			response.Status)
	}
	return a, nil
}

const (
	// maxProbes is the maximum number of requests of /readyz, and probeInterval is the time between two of them. So a
	// broker may become ready during ProbeBroker.
	maxProbes     = 5
	probeInterval = 500 * time.Millisecond
)

// ProbeBroker requests /healthz and /readyz from the broker at a URL. If the URL is empty, it sends no request, and
// returns the zero Probe.
func ProbeBroker(ctx context.Context, broker string) doctor.Probe {
	if broker == "" {
		return doctor.Probe{}
	}
	p := doctor.Probe{URL: broker + "/readyz"}
	if alive, err := Get(ctx, broker+"/healthz"); err == nil {
		p.Alive = alive.Checks
	}
	for n := 1; ; n++ {
		ready, err := Get(ctx, p.URL)
		p.Checks, p.Err = ready.Checks, err
		if err != nil || allPass(p.Checks) || n == maxProbes {
			return p
		}
		select {
		case <-ctx.Done():
			return p
		case <-time.After(probeInterval):
		}
	}
}
