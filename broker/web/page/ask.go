package page

import (
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

// An answerFunc answers a viewer's question from the streams.
type answerFunc func(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error)

// An answer has the response to a question, and the equivalent shell command.
type answer struct {
	Shell string `json:"shell"` // empty if no command is equivalent
	Data  any    `json:"data"`
}

func (p *Page) ask(f answerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.withSession(w, r, questionTimeout, func(ctx context.Context, i *inspect.Inspector) (any, error) {
			return f(ctx, i, r.URL.Query())
		})
	}
}

// extendDeadline gives a handler the time d to make its response, and transferTime to send the response. The server's
// write timeout is shorter, because it is for probes.
func extendDeadline(w http.ResponseWriter, d time.Duration) {
	// SetWriteDeadline fails only for the writer of a test.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d + transferTime))
}

// withSession waits, for at most slotTimeout, until fewer than maxQuestions questions are in progress. Then it connects
// and responds with the result of f. The timeout bounds the time for connecting and for f.
func (p *Page) withSession(
	w http.ResponseWriter, r *http.Request, timeout time.Duration,
	f func(ctx context.Context, i *inspect.Inspector) (any, error),
) {
	extendDeadline(w, timeout+slotTimeout)
	wait := time.NewTimer(slotTimeout)
	defer wait.Stop()
	select {
	case p.questions <- struct{}{}:
		defer func() { <-p.questions }()
	case <-r.Context().Done():
		return
	case <-wait.C:
		writeError(w, http.StatusServiceUnavailable,
			fmt.Sprintf("the page has %d requests in progress, which is the maximum: try again", maxQuestions))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	s := session{open: p.cfg.Open}
	defer s.close()
	i, err := s.connect(ctx)
	if err != nil {
		writeError(w, http.StatusBadGateway, text.Printable(err.Error(), 600))
		return
	}
	allowed, cancelAllowed := i.WithRefusal(ctx) // ends if the server reports a missing permission
	defer cancelAllowed()
	v, err := f(allowed, i)
	if err = inspect.Cause(allowed, err); err != nil {
		writeError(w, codeOf(ctx, err), text.Printable(err.Error(), 600))
		return
	}
	writeJSON(w, http.StatusOK, v)
}

func codeOf(ctx context.Context, err error) int {
	refusal, isRefusal := errors.AsType[*store.Refusal](err)
	switch {
	case isRefusal:
		return refusal.Code
	case errors.Is(err, errRequest), errors.Is(err, inspect.ErrCursor):
		return http.StatusBadRequest
	case ctx.Err() != nil:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// parseTarget parses a pattern of targets. If the parameter is missing, it returns "", which matches all targets.
func parseTarget(v url.Values) (string, error) {
	t := v.Get("target")
	if t == "" {
		return "", nil
	}
	return t, checkPattern(t)
}

func checkPattern(target string) error {
	if !message.ValidPattern(target) {
		return fmt.Errorf("%w: target %q: want tokens separated by dots, with * for one token and > for all further tokens",
			errRequest, target)
	}
	return nil
}

// parseLimit parses the maximum number of rows. If the parameter is missing, it returns defaultRows.
func parseLimit(v url.Values) (int, error) {
	text := v.Get("limit")
	if text == "" {
		return defaultRows, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRows {
		return 0, fmt.Errorf("%w: limit %q: want 1 to %d", errRequest, text, maxRows)
	}
	return n, nil
}

// parseBound parses a time, or a duration relative to now.
func parseBound(v url.Values, name string) (inspect.Bound, error) {
	b, err := inspect.ParseBound(v.Get(name))
	if err != nil {
		err = fmt.Errorf("%w: %s %q: %w", errRequest, name, v.Get(name), err)
	}
	return b, err
}

// parseTime parses a time, or a duration relative to now: before now if ago is set, and otherwise after now.
func parseTime(v url.Values, name string, now time.Time, ago bool) (time.Time, error) {
	b, err := parseBound(v, name)
	if ago && b.Offset != nil {
		return now.Add(-*b.Offset), err
	}
	return b.Time(now), err
}
