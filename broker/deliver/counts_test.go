package deliver

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestCountsByName: a name is a target, the pattern of the first two tokens, or the pattern of a rate with three
// tokens. If targets of one name have two rates, each rate has its own count.
func TestCountsByName(t *testing.T) {
	t.Parallel()
	cs := NewCounts(Rates{
		{Pattern: "shop.eu.mail", Value: 1}, {Pattern: "shop.*.sms", Value: 2}, {Pattern: "shop.>", Value: 3},
		{Pattern: "ads", Value: 4},
	})
	for _, test := range []struct{ subject, name, rate string }{
		{"orders", "orders", ""}, {"orders.paid", "orders.paid", ""}, {"orders.paid.eu", "orders.paid.>", ""},
		{"orders.paid.eu.x", "orders.paid.>", ""}, {"shop.eu.mail", "shop.eu.mail", "shop.eu.mail"},
		{"shop.us.sms", "shop.*.sms", "shop.*.sms"}, {"shop.us.mail", "shop.us.>", "shop.>"},
		{"shop.us", "shop.us", "shop.>"}, {"shop", "shop", ""}, {"ads", "ads", "ads"},
	} {
		c := cs.count(test.subject)
		if c.Target != test.name || c.Rate != test.rate {
			t.Errorf("%s is counted as %s of rate %s, want %s of %s", test.subject, c.Target, c.Rate, test.name, test.rate)
		}
		if again := cs.count(test.subject); again != c {
			t.Errorf("%s is counted in two places", test.subject)
		}
	}
}

// TestCountsAreBounded: the number of names is bounded. Each delivery is counted once. A flood of targets with one
// first token leaves room for names of other targets.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	cs := NewCounts(Rates{{Pattern: "paced.>", Value: 1}})
	for n := range 5000 {
		cs.count(fmt.Sprintf("orders.%d.done", n)).Note(Delivered)
		cs.count(fmt.Sprintf("paced.%d", n)).Note(Refused)
	}
	if c := cs.count("mail.out"); c.Target != "mail.out" {
		t.Errorf("after a flood of other targets, mail.out is counted as %s", c.Target)
	}
	for _, test := range []struct{ subject, name string }{{"orders.9999.done", "orders.>"}, {"paced.9999", "paced.>"}} {
		if c := cs.count(test.subject); c.Target != test.name {
			t.Errorf("%s is counted as %s, want %s", test.subject, c.Target, test.name)
		}
	}
	for n := range 5000 {
		cs.count(fmt.Sprintf("tenant%d.x", n)).Note(Delivered)
	}
	if got, limit := len(cs.All()), maxNames+2; got > limit {
		t.Errorf("there are %d names, want %d at most", got, limit)
	}
	if c := cs.count("another.x"); c.Target != everyTarget {
		t.Errorf("without room for a name, another.x is counted as %s, want %s", c.Target, everyTarget)
	}
	var delivered, refused uint64
	for _, c := range cs.All() {
		d, r := c.Read()
		delivered, refused = delivered+d, refused+r
	}
	if delivered != 10_000 || refused != 5000 {
		t.Errorf("counted %d delivered, %d refused, want 10000 and 5000", delivered, refused)
	}
}

// TestResultHasItsCount: the result of a delivery that was sent has the count of its target.
func TestResultHasItsCount(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.targets.limits.ByTarget = Rates{{Pattern: "slow", Value: 1}}
		k.stream(jetstream.StreamConfig{Name: "T", Subjects: []string{"t.>"}})
		k.subscribe("slow", nil)
		one, two := k.send("t.one", message.ModeStream), k.send("t.one", message.ModeStream)
		first, second := k.send("slow", message.ModeCore), k.send("slow", message.ModeCore)
		time.Sleep(time.Second)
		k.mu.Lock()
		count := k.targets.bySubject["t.one"].count
		k.mu.Unlock()
		for name, sent := range map[string]*watched{"one": one, "two": two} {
			if r := sent.result(t); r.Outcome != Delivered || r.Count != count || r.Count.Target != "t.one" {
				t.Errorf("%s: %s, counted in %v, want %v", name, r.Outcome, r.Count, count)
			}
		}
		if r := first.result(t); r.Outcome != Delivered || r.Count == nil {
			t.Errorf("the first of a slow target: %s, counted in %v", r.Outcome, r.Count)
		}
		if r := second.result(t); r.Outcome != Paced || r.Count != nil {
			t.Errorf("the second of a slow target: %s, counted in %v, although it was not sent", r.Outcome, r.Count)
		}
	})
}

// result returns the only result, and fails the test if there is none or more than one.
func (v *watched) result(t *testing.T) Result {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.results) != 1 {
		t.Fatalf("%d results, want 1", len(v.results))
	}
	return v.results[0]
}
