package page

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"delaybroker/broker"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/streams"
)

const secret = "0123456789abcdef0123"

type idleEngine struct{}

func (idleEngine) Status() broker.Status {
	return broker.Status{Lanes: []stats.LaneStatus{
		{Stream: "DELAY_INTAKE", Kind: string(streams.Intake)}, {Stream: "DELAY_RETRY_1s", Kind: string(streams.Retry)},
	}}
}

func (idleEngine) Instance() string { return "west" }

func (idleEngine) AnswerOf(broker.Status) broker.InstanceStatus {
	return broker.InstanceStatus{
		Instance: "west", Ready: true, Totals: &stats.Totals{Delivered: 10},
		Lanes: []stats.LaneAnswer{{Stream: "DELAY_INTAKE", Live: true, Pending: 7}},
	}
}

func (idleEngine) Targets() []stats.TargetAnswer { return nil }

var errNoNATS = errors.New("there is no NATS server")

func newPage(a Access) *Page {
	return New(Config{
		Engine: idleEngine{}, Checks: func() []stats.Check { return nil }, History: new(history.Book), Access: a,
		Open:       func(context.Context) (*inspect.Inspector, error) { return nil, errNoNATS },
		Durability: new(atomic.Pointer[string]), Version: "v1", Prefix: "delay", Log: slog.New(slog.DiscardHandler),
		Host: func() doctor.Host { return doctor.Host{Version: "v1"} },
	})
}

// call sends a request to the page. The headers are pairs of a name and a value.
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

func (idleEngine) LaneHistory() map[string][]uint64 { return nil }

func (idleEngine) Marks() []stats.Mark { return nil }
