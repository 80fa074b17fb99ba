package page

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/ratelog"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/text"
)

// Engine has the methods of a broker that the page calls.
type Engine interface {
	Instance() string
	Status() broker.Status
	AnswerOf(broker.Status) broker.InstanceStatus
	Targets() []stats.TargetAnswer
	LaneHistory() map[string][]uint64
	Marks() []stats.Mark
}

// Config holds the page's sources and its access rules.
type Config struct {
	Engine Engine
	Checks func() []stats.Check // the checks of /readyz
	// Open connects as the page's user, and returns an inspector for the streams. The page closes the inspector.
	Open       func(ctx context.Context) (*inspect.Inspector, error)
	History    *history.Book
	Durability *atomic.Pointer[string] // the durability of an acknowledged message; nil until it is known
	Host       func() doctor.Host      // returns facts about this host, for the findings
	Version    string
	Prefix     string // of the broker's subjects
	Rates      deliver.Rates
	Access     Access
	Log        *slog.Logger
}

const (
	// maxQuestions is the maximum number of concurrent questions of viewers. Each question opens a connection.
	maxQuestions = 4
	// questionTimeout is the timeout of a question. Before that, a question waits for one of maxQuestions slots, at most
	// for slotTimeout.
	questionTimeout, slotTimeout = 10 * time.Second, 3 * time.Second
	// actionTimeout is the timeout of an action, which may change thousands of letters.
	actionTimeout = 60 * time.Second
	// transferTime is the time for sending a response, in addition to the time for making it.
	transferTime = 10 * time.Second
)

// Page serves the page over HTTP. New creates a Page, and Run makes the frames for the viewers.
type Page struct {
	cfg         Config
	mux         *http.ServeMux
	files       map[string]file
	viewers     viewers
	questions   chan struct{} // a slot for each question in progress
	origins     *http.CrossOriginProtection
	stopped     chan struct{} // closed when Run ends
	watch       atomic.Pointer[watch]
	wrongTokens ratelog.Limit // limits the log of wrong tokens
}

// New returns a page. It starts no goroutine: see Run.
func New(cfg Config) *Page {
	p := &Page{
		cfg: cfg, mux: http.NewServeMux(), files: embeddedFiles(), viewers: newViewers(),
		questions: make(chan struct{}, maxQuestions), stopped: make(chan struct{}), origins: cfg.Access.origins(),
	}
	p.mux.HandleFunc("GET /{$}", p.index)
	p.mux.HandleFunc("GET /assets/{name}", p.asset)
	p.mux.HandleFunc("GET /api/events", p.events)
	p.mux.HandleFunc("GET /api/access", p.access)
	p.mux.HandleFunc("GET /api/lines", p.lines)
	p.mux.HandleFunc("GET /api/history", p.ask(p.history))
	p.mux.HandleFunc("GET /api/ahead", p.ask(p.ahead))
	p.mux.HandleFunc("GET /api/operations", p.operations)
	p.mux.HandleFunc("GET /api/look/{name...}", p.requireRows(p.look))
	p.mux.HandleFunc("GET /api/find", p.requireRows(p.ask(p.find)))
	p.mux.HandleFunc("GET /api/targets", p.requireRows(p.ask(p.targets)))
	p.mux.HandleFunc("GET /api/content", p.requireRows(p.content))
	p.mux.HandleFunc("GET /api/findings", p.requireRows(p.findings))
	p.mux.HandleFunc("POST /api/plan", p.requireActions(p.planChange))
	p.mux.HandleFunc("POST /api/act", p.requireActions(p.act))
	return p
}

// Run makes frames while there are viewers, until ctx ends. At its end, it disconnects the viewers.
func (p *Page) Run(ctx context.Context) {
	defer close(p.stopped)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.viewers.arrivals:
			p.produce(ctx)
		}
	}
}

// ServeHTTP serves the page. It refuses a request whose Host is not allowed.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, value := range securityHeaders {
		h.Set(name, value)
	}
	if !p.cfg.Access.allowsHost(r.Host) {
		writeError(w, http.StatusForbidden, "the request was refused: unknown host name "+text.Printable(r.Host, 100)+
			": use the broker's address, or add the name to DELAY_HTTP_HOSTS")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// securityHeaders has the security headers of every response.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has disconnected
}

func writeError(w http.ResponseWriter, code int, sentence string) {
	writeJSON(w, code, map[string]string{"error": sentence})
}
