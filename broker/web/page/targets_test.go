package page

import (
	"testing"

	"delaybroker/broker/deliver"
	"delaybroker/broker/inspect"
	"delaybroker/broker/pause"
	"delaybroker/broker/stats"
)

// busyEngine is an engine that delivers to two targets.
type busyEngine struct{ idleEngine }

func (busyEngine) Targets() []stats.TargetAnswer {
	return []stats.TargetAnswer{
		{TargetCount: stats.TargetCount{Target: "shop.mail", Rate: "shop.>", Delivered: 3}, DeliveredRate: new(0.5)},
		{TargetCount: stats.TargetCount{Target: "orders.paid.>", Delivered: 1, Refused: 9}, DeliveredRate: new(0.25)},
	}
}

// TestFlows: a flow has the limit of its pattern in DELAY_RATE, and a pause that covers it in full or in part.
func TestFlows(t *testing.T) {
	p := newPage(Access{})
	p.cfg.Engine, p.cfg.Rates = busyEngine{}, deliver.Rates{{Pattern: "shop.>", Value: 50}}
	flows := p.flows([]inspect.Pause{{Pause: pause.Pause{Pattern: "orders.paid.eu", State: pause.Paused}}})
	if len(flows) != 2 {
		t.Fatalf("got %d targets, want 2", len(flows))
	}
	if f := flows[0]; f.Target != "shop.mail" || f.Delivered != 3 || *f.DeliveredRate != 0.5 || f.Limit != 50 {
		t.Errorf("the busiest target: got %+v at %v/s", f, *f.DeliveredRate)
	}
	if f := flows[1]; f.Refused != 9 || f.Limit != 0 || f.Pause != "paused in part (orders.paid.eu)" {
		t.Errorf("the other target: got %+v", f)
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		paused, target string
		covers         bool
	}{
		{"a.b", "a.b", true}, {"a.*", "a.b", true}, {"a.>", "a.b", true}, {">", "a.>", true}, {"a.>", "a.>", true},
		{"a.b.>", "a.b.>", true}, {"a.*.>", "a.b.>", true}, {"a.b.*", "a.b.>", false}, {"a.b.c", "a.b.>", false},
		{"a.*", "a.>", false}, {"a.b", "a.b.>", false}, {"*.*.mail", "*.*.mail", true}, {"a.*.mail", "*.*.mail", false},
		{"b.>", "a.>", false}, {"a.b.c", "a.b", false},
	} {
		if got := covers(test.paused, test.target); got != test.covers {
			t.Errorf("%s covers %s: %v, want %v", test.paused, test.target, got, test.covers)
		}
	}
}
