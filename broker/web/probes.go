package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"delaybroker/broker/fault"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/metrics"
)

// aliveTimeout is the time after which a loop of the engine counts as stuck. Usually, an iteration takes far less.
const aliveTimeout = 2 * time.Second

// maxScrapes is the maximum number of concurrent scrapes of the metrics.
const maxScrapes = 4

// Engine has the methods of a broker that the probes call.
type Engine interface {
	Ready() <-chan struct{}
	Alive(ctx context.Context) error
	Status() stats.Status
}

// Source has the sources of the responses.
type Source struct {
	Engine     Engine
	LinkFaults func() map[string]fault.Fault // returns the links that do not work, by the name of the link
	// Storage returns the checks of the embedded server's storage. It is nil without such a server.
	Storage  func() []stats.Check
	Stopping <-chan struct{} // closed when the broker begins to stop
	// Durability describes the durability of an acknowledged message. The pointer contains nil until the durability is
	// known.
	Durability *atomic.Pointer[string]
	// Traces returns the numbers of sent and dropped spans. It is nil without tracing.
	Traces func() (sent, dropped uint64)

	Version, Revision, GoVersion string // of the program

	Page http.Handler // serves all other paths; nil if the page is off
}

// Handler returns the handler of the probes, the metrics and the page.
func (s Source) Handler() http.Handler {
	probes := s.probes()
	if s.Page == nil {
		return probes
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.Page)
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/status", "/metrics"} {
		mux.Handle(path, probes)
	}
	return mux
}

func (s Source) probes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.serveAlive)
	mux.HandleFunc("GET /livez", s.serveAlive)
	mux.HandleFunc("GET /readyz", s.serveReady)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.Engine.Status())
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.New(metrics.Source{
		Status: s.Engine.Status, Ready: func() bool { return allPass(s.Checks()) },
		Traces: s.Traces, Version: s.Version, Revision: s.Revision, GoVersion: s.GoVersion,
	}), promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	return mux
}

func (s Source) serveAlive(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), aliveTimeout)
	defer cancel()
	problem := ""
	if err := s.Engine.Alive(ctx); err != nil {
		problem = err.Error()
	}
	writeChecks(w, []stats.Check{check("process", ""), check("engine", problem)})
}

func (s Source) serveReady(w http.ResponseWriter, _ *http.Request) {
	writeChecks(w, s.Checks())
}

// Checks returns the readiness checks. The check "durability" is only information: it never fails.
func (s Source) Checks() []stats.Check {
	status := s.Engine.Status()
	var serving, started string // the problems of the checks "serving" and "started"
	if status.Draining || isClosed(s.Stopping) {
		serving = "draining"
	}
	if !isClosed(s.Engine.Ready()) {
		started = "not all lanes are read yet"
	}
	problem, remedy := laneProblem(status)
	lanes := check("lanes", problem)
	lanes.Remedy = remedy
	checks := []stats.Check{check("serving", serving), s.checkLinks(), check("started", started), lanes}
	if s.Storage != nil {
		checks = append(checks, s.Storage()...)
	}
	if meaning := s.Durability.Load(); meaning != nil {
		checks = append(checks, stats.Check{Name: "durability", OK: true, Detail: *meaning})
	}
	return checks
}

// check returns a check with a problem. The check passes if the problem is empty.
func check(name, problem string) stats.Check {
	return stats.Check{Name: name, OK: problem == "", Detail: problem}
}

// checkLinks fails with the links that do not work, grouped by the reason.
func (s Source) checkLinks() stats.Check {
	links := make(map[string][]string) // by reason
	remedy := ""
	faults := s.LinkFaults()
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		f := faults[name]
		links[f.Detail] = append(links[f.Detail], name)
		remedy = cmp.Or(remedy, f.Remedy)
	}
	var down []string
	for _, reason := range slices.Sorted(maps.Keys(links)) {
		down = append(down, reason+": "+strings.Join(links[reason], " "))
	}
	c := check("nats", strings.Join(down, "; "))
	c.Remedy = remedy
	return c
}

// laneProblem returns the worst problem of the lanes, with the names of the affected lanes and what to do. It returns
// "" if no lane has a problem.
func laneProblem(s stats.Status) (problem, remedy string) {
	var waiting, uncertain, newer, unworked []string
	var first *fault.Fault
	for _, l := range s.Lanes {
		switch {
		case l.Unworked >= stats.MaxUnworked:
			unworked = append(unworked, l.Stream)
		case !l.Owned:
		case l.NewerMessages > 0 && l.Overdue >= stats.MaxOverdue:
			newer = append(newer, l.Stream)
		case !l.Live, l.Fault != nil:
			waiting = append(waiting, l.Stream)
			first = cmp.Or(first, l.Fault)
		case l.InDoubt:
			uncertain = append(uncertain, l.Stream)
		}
	}
	switch {
	case len(unworked) > 0:
		return "no working loop: " + strings.Join(unworked, " "), "restart this instance if the lanes do not recover"
	case first != nil:
		return fmt.Sprintf("messages wait in %s: %s: %s", strings.Join(waiting, " "), first.Cause, first.Detail), first.Remedy
	case len(waiting) > 0:
		return "no longer read: " + strings.Join(waiting, " "), ""
	case len(newer) > 0:
		return "hold messages that only a newer broker can read: " + strings.Join(newer, " "), "finish the upgrade"
	case len(uncertain) > 0:
		return "no delivery while their ownership is uncertain: " + strings.Join(uncertain, " "), ""
	}
	return "", ""
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// allPass reports whether all checks pass.
func allPass(checks []stats.Check) bool {
	return !slices.ContainsFunc(checks, func(c stats.Check) bool { return !c.OK })
}

// A ProbeBody is the body of a response to /healthz, /livez or /readyz.
type ProbeBody struct {
	Status string        `json:"status"` // "ok" or "unavailable"
	Checks []stats.Check `json:"checks"`
}

func writeChecks(w http.ResponseWriter, checks []stats.Check) {
	status, code := "ok", http.StatusOK
	if !allPass(checks) {
		status, code = "unavailable", http.StatusServiceUnavailable
	}
	writeJSON(w, code, ProbeBody{status, checks})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	// Encode fails only if the client has disconnected.
	_ = json.NewEncoder(w).Encode(v)
}
