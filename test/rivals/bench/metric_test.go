package bench

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
)

// reportOf returns a report with a p99 for each side and round. The rounds are numbered from 1.
func reportOf(p99 map[Side][]float64) *Report {
	r := newReport(Plan{Scenario: Steady, Rate: 1000, Rounds: len(p99[Broker])})
	for _, side := range []Side{Broker, Scheduler, Pipeline} {
		if len(p99[side]) > 0 {
			r.Plan.Sides = append(r.Plan.Sides, side)
		}
		for i, ms := range p99[side] {
			r.Results = append(r.Results, Result{Side: side, Round: i + 1, Late: &Spread{P99: ms}})
		}
	}
	return r
}

func find(t *testing.T, ratios []Ratio, side Side, metric string) Ratio {
	t.Helper()
	i := slices.IndexFunc(ratios, func(r Ratio) bool { return r.Side == side && r.Metric == metric })
	if i < 0 {
		t.Fatalf("got %+v, want %s of %s in it", ratios, metric, side)
	}
	return ratios[i]
}

// A ratio compares two turns of the same round. If the machine was slow in the whole round, the ratio does not change.
func TestRatiosToBroker(t *testing.T) {
	r := reportOf(map[Side][]float64{Broker: {2, 20, 4}, Scheduler: {200, 2200, 360}})
	got := find(t, r.RatiosToBroker(), Scheduler, "p99 ms")
	want := Ratio{Side: Scheduler, Metric: "p99 ms", Base: 4, Value: 360, Median: 100, Lowest: 90, Highest: 110}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, ratio := range r.RatiosToBroker() {
		if ratio.Side == Broker {
			t.Errorf("got %+v, want no ratio of the broker to itself", ratio)
		}
	}
}

// A side has no ratio if it does not support the scenario, or if it is in only one of the two runs.
func TestCompare(t *testing.T) {
	earlier := reportOf(map[Side][]float64{Broker: {4, 2, 6}, Scheduler: {400, 400, 400}})
	later := reportOf(map[Side][]float64{Broker: {1, 3}, Pipeline: {1, 1}})
	later.Results = append(later.Results, Result{Side: Scheduler, Unsupported: "not supported", Late: &Spread{P99: 1}})
	later.Plan.Sides = append(later.Plan.Sides, Scheduler)
	ratios := Compare(earlier, later)
	if len(ratios) != 1 {
		t.Fatalf("got %+v, want one ratio", ratios)
	}
	want := Ratio{Side: Broker, Metric: "p99 ms", Base: 4, Value: 2, Median: 0.5, Lowest: 0.5, Highest: 0.5}
	if ratios[0] != want {
		t.Errorf("got %+v, want %+v", ratios[0], want)
	}
}

func TestDifferences(t *testing.T) {
	earlier, later := reportOf(nil), reportOf(nil)
	if got := Differences(earlier, later); len(got) > 0 {
		t.Errorf("equal runs: got %q, want no difference", got)
	}
	later.Plan.Rate, later.Plan.Delays = 5000, []Delay{{Duration: time.Minute, Random: true}}
	later.Server = "2.99.0"
	want := []string{"rate 1000 → 5000", "delay [] → [random:1m]", "nats-server  → 2.99.0"}
	if got := Differences(earlier, later); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The output of --json is the input of --compare.
func TestReportsSurviveJSON(t *testing.T) {
	plan, err := NewPlan(Chain)
	if err != nil {
		t.Fatal(err)
	}
	want := newReport(plan)
	want.Results = []Result{{
		Side: Broker, Round: 1, Tally: Tally{Count: 3, Lost: 1}, Late: &Spread{Min: -1, P999: 3},
		Cost: &Cost{Server: 1}, Idle: &IdleCost{ReadyMS: 4}, Histogram: "abc",
	}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("got %+v, want %+v", got, *want)
	}
}
