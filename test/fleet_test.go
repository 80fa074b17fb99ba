package test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/figures"
	"delaybroker/broker/history"
	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// An operator who asks all instances learns what each has done, and, where it was asked for, what it did lately: to the
// message, in the step in which that was. What a stranger answers is not proven.
func TestFleetTellsWhatItDid(t *testing.T) {
	bubble(t, server.Options{}, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{MaxOwners: 2, Instance: "west", History: new(history.Book)}
		startBroker(t, s, cfg)
		other := cfg
		other.Instance, other.History = "east", nil
		startBroker(t, s, other)
		i, err := inspect.Open(s.Connect(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Learn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c := newClient(t, s)
		if _, err := c.nc.SubscribeSync("x"); err != nil {
			t.Fatal(err)
		}
		for range 7 {
			c.publish("delay.1s.x", "x")
		}
		time.Sleep(30 * time.Second)
		forge(t, s)
		members, err := i.Fleet(t.Context(), broker.HistoryHour)
		if err != nil || len(members) != 3 {
			t.Fatalf("got %d members, %v", len(members), err)
		}
		checkMembers(t, members)
		members, err = i.Fleet(t.Context(), "")
		for _, m := range members {
			if err != nil || m.History != nil {
				t.Errorf("%s tells a history that nobody asked for; %v", m.Instance, err)
			}
		}
	})
}

// checkMembers wants seven deliveries of all together, and the history of the one that keeps it to have its own.
func checkMembers(t *testing.T, members []inspect.Member) {
	t.Helper()
	var delivered int64
	for _, m := range members {
		if m.Proven == (m.Instance == "evil") {
			t.Errorf("%s is proven: %v", m.Instance, m.Proven)
		}
		if !m.Proven {
			continue
		}
		delivered += int64(m.Totals.Delivered)
		if kept := m.History != nil; kept != (m.Instance[:4] == "west") {
			t.Errorf("%s tells a history: %v", m.Instance, kept)
		}
		if m.History == nil {
			continue
		}
		var lately int64
		for _, n := range m.History.Delivered {
			lately += max(0, n)
		}
		if lately != int64(m.Totals.Delivered) {
			t.Errorf("the history has %d deliveries, and its instance made %d", lately, m.Totals.Delivered)
		}
	}
	if delivered != 7 {
		t.Errorf("they delivered %d, want 7", delivered)
	}
}

// forge answers every question of operators as an instance that is none.
func forge(t *testing.T, s *natstest.Server) {
	t.Helper()
	nc := s.Connect()
	body, err := json.Marshal(broker.Answer{Instance: "evil", Totals: &figures.Totals{Delivered: 1 << 40}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Subscribe("delayctl.status", func(m *nats.Msg) { _ = nc.Publish(m.Reply, body) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}
