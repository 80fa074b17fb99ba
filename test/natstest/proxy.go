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

// Proxy forwards JetStream API requests to the server, except for those for which take returns true. It returns
// ProxyAPI.
func Proxy(t testing.TB, s *Server, take func(question string, m *nats.Msg) bool) (prefix string) {
	t.Helper()
	api := s.Connect(nats.Name("api"))
	Handle(t, api, ProxyAPI+".>", func(m *nats.Msg) {
		question := strings.TrimPrefix(m.Subject, ProxyAPI+".")
		if !take(question, m) {
			Forward(api, question, m)
		}
	})
	Flush(t, api) // otherwise the first request may have no responder
	return ProxyAPI
}

// Forward sends a request of a Proxy to the server's JetStream. The answer goes to the sender of the request. Forward
// ignores an error of the publish: the connection is closed only when no client waits for an answer.
func Forward(nc *nats.Conn, question string, m *nats.Msg) {
	_ = nc.PublishMsg(&nats.Msg{Subject: "$JS.API." + question, Reply: m.Reply, Header: m.Header, Data: m.Data})
}

// Pages answers requests for a list of streams with one page after the other.
type Pages struct {
	Answers []string // the remaining answers
	Offsets []int    // the offset in each request so far
}

// Ask decodes the next page into answer.
func (p *Pages) Ask(_ context.Context, _ string, request, answer any) error {
	p.Offsets = append(p.Offsets, request.(map[string]int)["offset"])
	page := p.Answers[0]
	p.Answers = p.Answers[1:]
	return json.Unmarshal([]byte(page), answer)
}
