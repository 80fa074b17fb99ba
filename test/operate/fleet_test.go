package operate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFleetTotals: each instance answers an operator with its totals and, if requested, with its history, exact to the
// message and to the second. An answer without a valid seal is reported as unproven.
func TestFleetTotals(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{MaxOwners: 2, Instance: "west", History: new(history.Book)}
		harness.StartBroker(t, s, cfg)
		other := cfg
		other.Instance, other.History = "east", nil
		harness.StartBroker(t, s, other)
		i := harness.Inspect(t, s, cfg)
		time.Sleep(time.Minute)
		c := harness.NewClient(t, s)
		if _, err := c.NC.SubscribeSync("x"); err != nil {
			t.Fatal(err)
		}
		for range 7 {
			c.Publish("delay.1s.x", "x")
		}
		time.Sleep(30 * time.Second)
		forge(t, s)
		members, err := i.Fleet(t.Context(), broker.QueryOptions{History: broker.HistoryHour})
		if err != nil || len(members) != 3 {
			t.Fatalf("got %d members, %v", len(members), err)
		}
		checkMembers(t, members)
		members, err = i.Fleet(t.Context(), broker.QueryOptions{})
		for _, m := range members {
			if err != nil || m.History != nil {
				t.Errorf("%s answers with a history without a request for it; %v", m.Instance, err)
			}
		}
		at := slices.IndexFunc(members, func(m inspect.Member) bool { return strings.HasPrefix(m.Instance, "west") })
		except := members[at].Instance
		members, err = i.Fleet(t.Context(), broker.QueryOptions{Except: except})
		for _, m := range members {
			if err != nil || m.Instance == except || len(members) != 2 {
				t.Errorf("%s, one of %d, answers although the request excludes %s; %v", m.Instance, len(members), except, err)
			}
		}
	})
}

// TestFleetTargets: if requested, each instance reports its deliveries to each target, in total and as an average of
// the last ten seconds. Together they report all deliveries.
func TestFleetTargets(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{
			MaxOwners: 2, Instance: "west", History: new(history.Book), Attempts: 1,
			Rates: deliver.Rates{{Pattern: "orders.>", Value: 1000}, {Pattern: "idle", Value: 1}},
		}
		west := harness.StartBroker(t, s, cfg)
		other := cfg
		other.Instance, other.History = "east", new(history.Book)
		east := harness.StartBroker(t, s, other)
		i := harness.Inspect(t, s, cfg)
		time.Sleep(time.Minute)
		time.Sleep(time.Until(time.Now().Truncate(history.FineStep).Add(history.FineStep + time.Second)))
		c := harness.NewClient(t, s)
		c.Subscribe("orders.>")
		for range 20 { // these levels include lanes of both instances
			c.Publish("delay.1s.orders.paid", "x")
			c.Publish("delay.5s.orders.sent.eu", "x")
		}
		c.Publish("delay.1s.nobody", "x")
		time.Sleep(10 * time.Second)
		members, err := i.Fleet(t.Context(), broker.QueryOptions{Targets: true})
		if err != nil || len(members) != 2 {
			t.Fatalf("got %d members, %v", len(members), err)
		}
		const want = `[{"target":"orders.paid","rate":"orders.\u003e","delivered":20,"refused":0,"delivered_per_second":2,` +
			`"refused_per_second":0},{"target":"orders.sent.\u003e","rate":"orders.\u003e","delivered":20,"refused":0,` +
			`"delivered_per_second":2,"refused_per_second":0},{"target":"nobody","delivered":0,"refused":1,` +
			`"delivered_per_second":0,"refused_per_second":0.1},{"target":"idle","rate":"idle","delivered":0,"refused":0,` +
			`"delivered_per_second":0,"refused_per_second":0},{"target":"orders.\u003e","rate":"orders.\u003e","delivered":0,` +
			`"refused":0,"delivered_per_second":0,"refused_per_second":0}]`
		if got, _ := json.Marshal(stats.AddTargets(members[0].Targets, members[1].Targets)); string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		var rated uint64
		for _, b := range []*harness.Instance{west, east} {
			for _, r := range b.Broker.Status().Rates {
				rated += r.Delivered
			}
		}
		if rated != 40 {
			t.Errorf("%d deliveries have the pattern of the rate, want 40", rated)
		}
	})
}

// TestTargetsMatchTotals: three consecutive deliveries without an answer of a stream count as one refusal, as in all
// other figures.
func TestTargetsMatchTotals(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		modes, err := deliver.ParseModes("mute.>=stream,auto")
		natstest.NoError(t, err)
		b, c := harness.Start(t, s, broker.Config{Deliver: modes, Attempts: 1, History: new(history.Book)})
		c.Subscribe("mute.x") // no stream has the subject
		c.Subscribe("x")
		c.Publish("delay.1s.mute.x", "x")
		c.Publish("delay.1s.x", "x")
		time.Sleep(3 * time.Minute)
		got := make(map[string][2]uint64)
		var sum [2]uint64
		for _, a := range b.Broker.Targets() {
			got[a.Target] = [2]uint64{a.Delivered, a.Refused}
			sum[0], sum[1] = sum[0]+a.Delivered, sum[1]+a.Refused
		}
		if got["mute.x"] != [2]uint64{0, 1} || got["x"] != [2]uint64{1, 0} || len(got) != 2 {
			t.Errorf("delivered and refused by target: %v, want one of each", got)
		}
		if all := b.Broker.Answer().Totals; sum != [2]uint64{all.Delivered, all.Refused} {
			t.Errorf("the targets have %v, and the totals %d and %d", sum, all.Delivered, all.Refused)
		}
	})
}

// checkMembers expects seven deliveries of all instances together, and in the history of each instance its own
// deliveries.
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
			t.Errorf("%s answers with a history: %v", m.Instance, kept)
		}
		if m.History == nil {
			continue
		}
		var sum int64
		for _, n := range m.History.Delivered {
			sum += max(0, n)
		}
		if sum != int64(m.Totals.Delivered) {
			t.Errorf("the history of %s has %d deliveries, and its totals have %d", m.Instance, sum, m.Totals.Delivered)
		}
	}
	if delivered != 7 {
		t.Errorf("the instances delivered %d messages, want 7", delivered)
	}
}

// forge answers all requests of operators, as an instance that does not exist.
func forge(t *testing.T, s *natstest.Server) {
	t.Helper()
	nc := s.Connect()
	body, err := json.Marshal(broker.Answer{Instance: "evil", Totals: &stats.Totals{Delivered: 1 << 40}})
	natstest.NoError(t, err)
	natstest.Handle(t, nc, "delayctl.status", func(m *nats.Msg) { _ = nc.Publish(m.Reply, body) })
	natstest.Flush(t, nc)
}
