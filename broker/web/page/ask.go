package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer/store"
)

// A question is a request of a viewer that the page answers from the streams.
type question func(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error)

// An answer has rows, and the equivalent shell command.
type answer struct {
	Shell string `json:"shell"`
	Data  any    `json:"data"`
}

// ask waits for a free slot and answers a question on its own connection.
func (p *Page) ask(f question) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.withSession(w, r, questionTime, func(ctx context.Context, i *inspect.Inspector) (any, error) {
			return f(ctx, i, r.URL.Query())
		})
	}
}

// extendDeadline gives a handler the time d to make its response, and transferTime to send it. The server's own write
// timeout is shorter, because it is for probes.
func extendDeadline(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d + transferTime)) // fails only for a test's writer
}

// withSession waits for a slot, connects, and responds with the result of f. The timeout is for connecting and for f.
func (p *Page) withSession(
	w http.ResponseWriter, r *http.Request, timeout time.Duration,
	f func(ctx context.Context, i *inspect.Inspector) (any, error),
) {
	extendDeadline(w, timeout+waitTime)
	wait := time.NewTimer(waitTime)
	defer wait.Stop()
	select {
	case p.questions <- struct{}{}:
		defer func() { <-p.questions }()
	case <-r.Context().Done():
		return
	case <-wait.C:
		writeError(w, http.StatusServiceUnavailable, fmt.Sprintf("%d requests are in progress; try again", maxQuestions))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	s := session{open: p.cfg.Open}
	defer s.close()
	i, err := s.take(ctx)
	if err != nil {
		writeError(w, http.StatusBadGateway, text.Printable(err.Error(), 600))
		return
	}
	allowed, cancelAllowed := i.WithRefusal(ctx) // a refusal by the server ends the question
	defer cancelAllowed()
	v, err := f(allowed, i)
	if err = inspect.Cause(allowed, err); err != nil {
		writeError(w, codeOf(ctx, err), text.Printable(err.Error(), 600))
		return
	}
	writeJSON(w, http.StatusOK, v)
}

// codeOf returns the HTTP status for an error.
func codeOf(ctx context.Context, err error) int {
	refused := (*store.Refusal)(nil)
	switch {
	case errors.As(err, &refused):
		return refused.Code
	case errors.Is(err, errAsked), errors.Is(err, inspect.ErrCursor):
		return http.StatusBadRequest
	case ctx.Err() != nil:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// target returns the pattern of targets. An empty pattern matches all targets.
func target(v url.Values) (string, error) {
	t := v.Get("target")
	if t == "" {
		return "", nil
	}
	return t, checkPattern(t)
}

func checkPattern(target string) error {
	if !message.ValidPattern(target) {
		return fmt.Errorf("%w: target %q: tokens separated by dots; * for one token, > for the rest", errAsked, target)
	}
	return nil
}

// number parses a number from 1 to limit. If it is missing, number returns the given default.
func number(v url.Values, name string, otherwise, limit int) (int, error) {
	text := v.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > limit {
		return 0, fmt.Errorf("%w: %s %q: want 1 to %d", errAsked, name, text, limit)
	}
	return n, nil
}

// whole parses a number from 0. If it is missing, whole returns zero.
func whole(v url.Values, name string) (uint64, error) {
	n, err := strconv.ParseUint(cmp.Or(v.Get(name), "0"), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%w: %s %q: want a number", errAsked, name, v.Get(name))
	}
	return n, nil
}

// border parses a time, or a duration from now.
func border(v url.Values, name string) (inspect.Bound, error) {
	b, err := inspect.ParseBound(v.Get(name))
	if err != nil {
		err = fmt.Errorf("%w: %s %q: %w", errAsked, name, v.Get(name), err)
	}
	return b, err
}

// moment parses a border and returns it as a time. A duration counts from now: back if ago is set, and otherwise ahead.
func moment(v url.Values, name string, now time.Time, ago bool) (time.Time, error) {
	b, err := border(v, name)
	if ago && b.Offset != nil {
		return now.Add(-*b.Offset), err
	}
	return b.Time(now), err
}
