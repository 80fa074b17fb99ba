package page

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/streams"
)

const secret = "0123456789abcdef0123"

// still is an engine without activity.
type still struct{}

func (still) Status() broker.Status {
	return broker.Status{Lanes: []stats.LaneStatus{
		{Stream: "DELAY_INTAKE", Kind: string(streams.Intake)}, {Stream: "DELAY_RETRY_1s", Kind: string(streams.Retry)},
	}}
}

func (still) Instance() string { return "west" }

func (still) AnswerOf(broker.Status) broker.Answer {
	return broker.Answer{
		Instance: "west", Ready: true, Totals: &stats.Totals{Delivered: 10},
		Lanes: []stats.LaneAnswer{{Stream: "DELAY_INTAKE", Live: true, Pending: 7}},
	}
}

func (still) Targets() []stats.TargetAnswer { return nil }

var errNoNATS = errors.New("there is no NATS here")

// newPage returns a page without a connection to NATS.
func newPage(a Access) *Page {
	return New(Config{
		Engine: still{}, Checks: func() []stats.Check { return nil }, History: new(history.Book), Access: a,
		Open:       func(context.Context) (*inspect.Inspector, error) { return nil, errNoNATS },
		Durability: new(atomic.Pointer[string]), Version: "v1", Prefix: "delay", Log: slog.New(slog.DiscardHandler),
	})
}

// call sends a request. The headers are pairs.
func call(p *Page, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8422"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}
