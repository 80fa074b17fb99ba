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

// TestFleetAnswers: each instance answers an operator. An answer without a valid seal is reported as unproven, and the
// instance that a request excludes does not answer.
func TestFleetAnswers(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Leaser: harness.Together, Instance: "west"}
		harness.StartBroker(t, s, cfg)
		other := cfg
		other.Instance = "east"
		harness.StartBroker(t, s, other)
		i := harness.Inspect(t, s, cfg)
		forge(t, s)
		members, err := i.Fleet(t.Context(), "")
		if err != nil || len(members) != 3 {
			t.Fatalf("got %d members, %v", len(members), err)
		}
		for _, m := range members {
			if m.Proven == (m.Instance == "evil") {
				t.Errorf("%s is proven: %v", m.Instance, m.Proven)
			}
		}
		except := members[slices.IndexFunc(members, func(m inspect.Member) bool { return m.Proven })].Instance
		members, err = i.Fleet(t.Context(), except)
		for _, m := range members {
			if err != nil || m.Instance == except || len(members) != 2 {
				t.Errorf("%s, one of %d, answers although the request excludes %s; %v", m.Instance, len(members), except, err)
			}
		}
	})
}

// figuresOf returns the history of the last hour and of the last day, the targets and the marks of an instance.
func figuresOf(t *testing.T, b *harness.Instance, book *history.Book, at time.Time) string {
	t.Helper()
	targets := b.Broker.Targets()
	for n := range targets {
		targets[n].DeliveredRate, targets[n].RefusedRate = nil, nil // of the latest ten seconds
		targets[n].Recent = nil                                     // of the latest five minutes
	}
	body, err := json.Marshal([]any{book.Hour(at), book.Day(at), targets, b.Broker.Marks()})
	natstest.NoError(t, err)
	return strings.NewReplacer("-1,", "", "null,", "").Replace(string(body)) // without the unknown steps
}

// TestFiguresSurviveTakeOver: all instances have the same history, targets and marks. A kill of the active instance,
// and a restart of all instances, change no past value. The moment of the take-over, of a pause and of its end are
// marked.
func TestFiguresSurviveTakeOver(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		start := func(name string) (*harness.Instance, *history.Book) {
			book := new(history.Book)
			return harness.StartBroker(t, s, broker.Config{
				Leaser: harness.Together, Instance: name, History: book, Attempts: 1,
				Rates: deliver.Rates{{Pattern: "orders.>", Value: 1000}},
			}), book
		}
		step := func() { // until all instances have the figures of the next step
			time.Sleep(time.Until(time.Now().Truncate(history.FineStep).Add(history.FineStep + 5*time.Second)))
			time.Sleep(history.FineStep)
		}
		west, westBook := start("west")
		east, eastBook := start("east")
		c := harness.NewClient(t, s)
		c.Subscribe("orders.>")
		for range 20 {
			c.Publish("delay.1s.orders.paid", "x")
		}
		c.Publish("delay.1s.nobody", "x")
		step()
		operator := harness.Inspect(t, s, broker.Config{})
		harness.MustPause(t, operator, "mail.>")
		step()
		harness.MustResume(t, operator, "mail.>")
		step()
		at := time.Now()
		before := figuresOf(t, west, westBook, at)
		if got := figuresOf(t, east, eastBook, at); got != before || !strings.Contains(before, `"target":"orders.paid"`) ||
			!strings.Contains(before, `"delivered":20`) || !strings.Contains(before, `"text":"paused mail.\u003e"`) ||
			!strings.Contains(before, `"text":"resumed mail.\u003e"`) {
			t.Errorf("the active instance has %s\nthe stand-by has %s", before, got)
		}
		west.Crash()
		time.Sleep(time.Minute)
		hour := eastBook.Hour(time.Now())
		var delivered int64
		for _, n := range hour.Delivered {
			delivered += max(0, n)
		}
		if got := figuresOf(t, east, eastBook, at); delivered != 20 || !strings.HasPrefix(got, before[:len(before)-2]) {
			t.Errorf("after the take-over: %s\nbefore: %s", got, before)
		}
		marks := east.Broker.Marks()
		if m := marks[len(marks)-1]; len(marks) != 3 || !strings.HasPrefix(m.Text, "east") ||
			!strings.Contains(m.Text, " took over from west") {
			t.Errorf("marks %+v, want the take-over as the third", marks)
		}
		for range 5 {
			c.Publish("delay.1s.orders.paid", "x")
		}
		step()
		if all := east.Broker.Targets(); all[0].Target != "orders.paid" || all[0].Delivered != 25 {
			t.Errorf("after the take-over: targets %+v, want 25 deliveries to orders.paid", all)
		}
		east.Stop()
		north, northBook := start("north")
		step()
		if all := north.Broker.Targets(); all[0].Delivered != 25 ||
			northBook.Hour(at).Delivered[0] != eastBook.Hour(at).Delivered[0] {
			t.Errorf("after a restart: targets %+v, want 25 deliveries to orders.paid", all)
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

// forge answers all requests of operators, as an instance that does not exist.
func forge(t *testing.T, s *natstest.Server) {
	t.Helper()
	nc := s.Connect()
	body, err := json.Marshal(broker.InstanceStatus{Instance: "evil", Totals: &stats.Totals{Delivered: 1 << 40}})
	natstest.NoError(t, err)
	natstest.Handle(t, nc, "delayctl.status", func(m *nats.Msg) { _ = nc.Publish(m.Reply, body) })
	natstest.Flush(t, nc)
}
