package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// webGrace is how long a stop waits for responses in progress.
	webGrace = time.Second
	// askTimeout is the timeout of a probe. It is longer than aliveTimeout, for which the handler of /healthz waits for
	// the engine.
	askTimeout = aliveTimeout + 2*time.Second
)

// NewServer returns the HTTP server for the probes. Its limits bound the memory and goroutines that clients can use.
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

// Serve answers requests until Close. If the server fails, Serve calls fail with the error.
func Serve(web *http.Server, listener net.Listener, fail context.CancelCauseFunc) {
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		fail(fmt.Errorf("serve HTTP: %w", err))
	}
}

// Close shuts the server down. Responses in progress have webGrace to finish.
func Close(web *http.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), webGrace)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		log.Debug("closed the HTTP server with responses in progress", "err", err)
		web.Close()
	}
}

// Ask requests the URL of a broker's probe.
func Ask(ctx context.Context, url string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Answer{}, err
	}
	// The default client would use a proxy from the environment.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, errors.Unwrap(err) // without url.Error, which repeats the address
	}
	defer response.Body.Close()
	var a Answer
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil || len(a.Checks) == 0 {
		return Answer{}, fmt.Errorf("%s, not in the broker's format: does another program listen there?", response.Status)
	}
	return a, nil
}
