package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/web/page"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTicketActsOnce: a plan of the page is carried out several times while it is valid, and makes one extra delivery
// of a series. Another plan makes another.
func TestTicketActsOnce(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimersOn(t)
		b := harness.StartBroker(t, s, cfg)
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		c.Publish("delaytimer.k.orders.x", "body", "Delay-Every", "1d")
		v := viewer{page.New(page.Config{
			Engine: b.Broker, Checks: func() []stats.Check { return nil }, History: new(history.Book),
			Durability: new(atomic.Pointer[string]), Version: "v1", Prefix: "delay", Log: slog.New(slog.DiscardHandler),
			Access: page.Access{Tokens: []page.Token{{Name: "ann", Secret: viewerToken}}, Actions: true},
			Open: func(context.Context) (*inspect.Inspector, error) {
				return inspect.Open(s.Connect(nats.Name("page")), cfg)
			},
		})}
		for plans := 1; plans <= 2; plans++ {
			said, err := v.ask("POST", "/api/plan", `{"verb":"fire","key":"k","target":"orders.x"}`)
			var plan struct{ Ticket string }
			if err != nil || json.Unmarshal([]byte(said), &plan) != nil {
				t.Fatalf("it says %s, %v", said, err)
			}
			for range 3 {
				said, err := v.ask("POST", "/api/act", fmt.Sprintf(`{"ticket":%q}`, plan.Ticket))
				if err != nil || !strings.Contains(said, `"good":true`) {
					t.Errorf("it says %s, %v", said, err)
				}
				time.Sleep(50 * time.Second)
			}
			if n := len(in.All()); n != plans {
				t.Errorf("after %d plans %d arrived", plans, n)
			}
		}
	})
}
