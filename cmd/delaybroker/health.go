package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/metrics"
)

// aliveTimeout is how long the engine's loops may take to answer, which is much longer than any pass of theirs takes.
const aliveTimeout = 2 * time.Second

// webGrace is how long a stop waits for answers to probes.
const webGrace = time.Second

// scrapes is how many may read the metrics at once.
const scrapes = 4

// engine is what the probes need of a broker.
type engine interface {
	Ready() <-chan struct{}
	Alive(ctx context.Context) error
	Status() broker.Status
}

// health answers the probes of a supervisor.
type health struct {
	engine    engine
	connected func() map[string]bool // by link
	storage   func() []inspect.Check // of the embedded server; nil without one
	stopping  <-chan struct{}        // closed when a stop was asked for
	build     build
	// durability is what an acknowledgement means, once that is known.
	durability *atomic.Pointer[string]
}

func (h health) handler() http.Handler {
	mux := http.NewServeMux()
	// /healthz says whether a restart would help. So it never asks NATS: an outage there would restart every broker,
	// for nothing.
	mux.HandleFunc("GET /healthz", h.serveAlive)
	mux.HandleFunc("GET /livez", h.serveAlive)
	// /readyz says whether messages are delivered now.
	mux.HandleFunc("GET /readyz", h.serveReady)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, h.engine.Status())
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.New(metrics.Source{
		Status: h.engine.Status, Ready: func() bool { return isFine(h.checks()) },
		Version: h.build.name(), Revision: orUnknown(h.build.revision), GoVersion: orUnknown(h.build.goVersion),
	}), promhttp.HandlerOpts{MaxRequestsInFlight: scrapes}))
	return mux
}

func (h health) serveAlive(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), aliveTimeout)
	defer cancel()
	err := h.engine.Alive(ctx)
	c := inspect.Check{Name: "engine", OK: err == nil}
	if err != nil {
		c.Detail = err.Error()
	}
	writeChecks(w, []inspect.Check{{Name: "process", OK: true}, c})
}

func (h health) serveReady(w http.ResponseWriter, _ *http.Request) {
	writeChecks(w, h.checks())
}

// checks are for readiness. Durability is listed with them for information, and never fails.
func (h health) checks() []inspect.Check {
	status := h.engine.Status()
	all := []inspect.Check{h.checkServing(status), h.checkLinks(), h.checkStarted(), checkLanes(status)}
	if h.storage != nil {
		all = append(all, h.storage()...)
	}
	if meaning := h.durability.Load(); meaning != nil {
		all = append(all, inspect.Check{Name: "durability", OK: true, Detail: *meaning})
	}
	return all
}

func (h health) checkServing(s broker.Status) inspect.Check {
	if s.Draining || isClosed(h.stopping) {
		return inspect.Check{Name: "serving", Detail: "draining"}
	}
	return inspect.Check{Name: "serving", OK: true}
}

func (h health) checkLinks() inspect.Check {
	var down []string
	for name, up := range h.connected() {
		if !up {
			down = append(down, name)
		}
	}
	slices.Sort(down)
	return checkNone("nats", "not connected", down)
}

func (h health) checkStarted() inspect.Check {
	if !isClosed(h.engine.Ready()) {
		return inspect.Check{Name: "started", Detail: "not all lanes are read yet"}
	}
	return inspect.Check{Name: "started", OK: true}
}

func checkLanes(s broker.Status) inspect.Check {
	var dead, doubt []string
	for _, l := range s.Lanes {
		switch {
		case !l.Owned:
		case !l.Live:
			dead = append(dead, l.Stream)
		case l.InDoubt:
			doubt = append(doubt, l.Stream)
		}
	}
	if len(dead) == 0 {
		return checkNone("lanes", "not delivered from until it is certain whose they are", doubt)
	}
	return checkNone("lanes", "not read at the moment", dead)
}

// checkNone is a check that fails when something is bad.
func checkNone(name, problem string, bad []string) inspect.Check {
	if len(bad) == 0 {
		return inspect.Check{Name: name, OK: true}
	}
	return inspect.Check{Name: name, Detail: fmt.Sprintf("%s: %s", problem, strings.Join(bad, " "))}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func isFine(checks []inspect.Check) bool {
	return !slices.ContainsFunc(checks, func(c inspect.Check) bool { return !c.OK })
}

// An answer is the body of a probe's.
type answer struct {
	Status string          `json:"status"`
	Checks []inspect.Check `json:"checks"`
}

// writeChecks answers 200 when all checks are good and 503 otherwise.
func writeChecks(w http.ResponseWriter, checks []inspect.Check) {
	status, code := "ok", http.StatusOK
	if !isFine(checks) {
		status, code = "unavailable", http.StatusServiceUnavailable
	}
	writeJSON(w, code, answer{status, checks})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	// The only error left is a client that went away.
	_ = json.NewEncoder(w).Encode(v)
}

// newWeb is the server for the probes. Its bounds keep an open port from costing memory or goroutines.
func newWeb(log *slog.Logger) *http.Server {
	return &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      aliveTimeout + 5*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serveWeb answers probes until closeWeb.
func serveWeb(web *http.Server, listener net.Listener, fail context.CancelCauseFunc) {
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		fail(fmt.Errorf("serve HTTP: %w", err))
	}
}

func closeWeb(web *http.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), webGrace)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		log.Debug("probes were cut off", "err", err)
		web.Close()
	}
}
