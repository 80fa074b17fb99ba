package natstest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// ProxyAPI is the API prefix for clients that send their JetStream requests to a Proxy.
const ProxyAPI = "X.API"

// Proxy passes JetStream API requests on to the server. If take returns true, Proxy does not pass the request on. It
// returns ProxyAPI.
func Proxy(t testing.TB, s *Server, take func(question string, m *nats.Msg) bool) (prefix string) {
	t.Helper()
	api := s.Connect(nats.Name("api"))
	Handle(t, api, ProxyAPI+".>", func(m *nats.Msg) {
		question := strings.TrimPrefix(m.Subject, ProxyAPI+".")
		if !take(question, m) {
			PassOn(api, question, m)
		}
	})
	Flush(t, api) // or the first request may have no responder
	return ProxyAPI
}

// PassOn sends a request of a Proxy to the server's JetStream. The answer goes to the sender of the request. An error
// of the publish is ignored: then no client waits for the answer.
func PassOn(nc *nats.Conn, question string, m *nats.Msg) {
	_ = nc.PublishMsg(&nats.Msg{Subject: "$JS.API." + question, Reply: m.Reply, Header: m.Header, Data: m.Data})
}

// Pages answers requests for a list of streams with one page after the other.
type Pages struct {
	All     []string // the remaining answers
	Offsets []int    // of the requests so far
}

// Ask takes the next page.
func (p *Pages) Ask(_ context.Context, _ string, request, answer any) error {
	p.Offsets = append(p.Offsets, request.(map[string]int)["offset"])
	page := p.All[0]
	p.All = p.All[1:]
	return json.Unmarshal([]byte(page), answer)
}
