package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/text"
)

// An answerFunc answers a viewer's question from the streams.
type answerFunc func(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error)

func (p *Page) ask(f answerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.withSession(w, r, questionTimeout, func(ctx context.Context, i *inspect.Inspector) (any, error) {
			return f(ctx, i, r.URL.Query())
		})
	}
}

// withSession waits, for at most slotTimeout, until fewer than maxQuestions questions are in progress. Then it connects
// and responds with the result of f. The timeout bounds the time for connecting and for f.
func (p *Page) withSession(
	w http.ResponseWriter, r *http.Request, timeout time.Duration,
	f func(ctx context.Context, i *inspect.Inspector) (any, error),
) {
	// The server's write timeout is shorter, because it is for probes. SetWriteDeadline fails only for the writer of a
	// test.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slotTimeout + timeout + transferTime))
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
		writeError(w, http.StatusBadGateway, text.Sentence(err.Error()))
		return
	}
	allowed, cancelAllowed := i.WithRefusal(ctx) // ends if the server reports a missing permission
	defer cancelAllowed()
	v, err := f(allowed, i)
	if err = inspect.Cause(allowed, err); err != nil {
		writeError(w, codeOf(ctx, err), text.Sentence(err.Error()))
		return
	}
	writeJSON(w, http.StatusOK, v)
}

func codeOf(ctx context.Context, err error) int {
	status, hasStatus := errors.AsType[interface {
		error
		StatusCode() int
	}](err)
	switch {
	case hasStatus:
		return status.StatusCode()
	case errors.Is(err, errRequest):
		return http.StatusBadRequest
	case ctx.Err() != nil:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}
