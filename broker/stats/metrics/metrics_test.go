package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/levels"
)

// busySource returns the source of a broker with the default levels, in which every metric has a value.
func busySource(t *testing.T) Source {
	t.Helper()
	created, err := provision.StreamsOf(config.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := stats.Status{Counts: stats.Counts{Outcomes: map[string]uint64{}, DeadLetters: map[message.Code]uint64{},
		Lateness: map[streams.Kind]stats.Histogram{}}}
	for _, w := range created.Wanted(1<<20, true) {
		if w.Kind != streams.Dead {
			s.Lanes = append(s.Lanes, stats.LaneStatus{
				Stream: w.Stream, Kind: string(w.Kind), Owned: true, ClockKnown: true, NextDue: time.Now(), MaxBytes: 1 << 30,
			})
		}
	}
	if len(s.Lanes) < len(levels.Default().Levels()) {
		t.Fatalf("the broker has %d lanes, want at least one for each level", len(s.Lanes))
	}
	for _, kind := range []streams.Kind{streams.Intake, streams.Level, streams.Retry} {
		s.Lateness[kind] = stats.Histogram{Count: 1, Sum: time.Second, Buckets: slices.Repeat([]stats.Bucket{{}}, 18)}
		for i := range s.Lateness[kind].Buckets {
			s.Lateness[kind].Buckets[i].Bound = time.Duration(i+1) * time.Millisecond
		}
	}
	for o := range deliver.Outcomes {
		s.Outcomes[deliver.Outcome(o).String()] = 1
	}
	for n := range 20 {
		s.Rates = append(s.Rates, stats.RateCount{Pattern: fmt.Sprintf("shop.%d.>", n)})
	}
	for _, code := range message.Codes() {
		s.DeadLetters[code] = 1
	}
	for _, name := range []string{"read", "write", "deliver", "control"} {
		s.Links = append(s.Links, link.Status{Name: name})
	}
	return Source{
		Traces: func() (sent, dropped uint64) { return 2, 1 },
		Status: func() stats.Status { return s }, Ready: func() bool { return true },
		Version: "v1.0.0", Revision: "abc", GoVersion: "go1.26",
	}
}

// TestConventions runs Prometheus's own linter, and bounds the number of series of a broker.
func TestConventions(t *testing.T) {
	registry := New(busySource(t))
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]bool{}
	series := 0
	for _, f := range families {
		ours := strings.HasPrefix(f.GetName(), "delaybroker_")
		if !ours && !strings.HasPrefix(f.GetName(), "go_") && !strings.HasPrefix(f.GetName(), "process_") {
			t.Errorf("the prefix of %s is not delaybroker, go or process", f.GetName())
		}
		if ours && f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
		for _, m := range f.Metric {
			series++
			if h := m.Histogram; h != nil {
				series += len(h.Bucket) + 2
			}
			for _, l := range m.Label {
				if ours {
					labels[l.GetName()] = true
				}
			}
		}
	}
	if series > 1000 {
		t.Errorf("%d series, want at most 1000", series)
	}
	// A new label needs a bound on its values, and a sentence in doc.go.
	for l := range labels {
		if !slices.Contains([]string{"lane", "kind", "code", "outcome", "link", "found", "version", "revision",
			"go_version", "pattern"}, l) {
			t.Errorf("the values of the label %s have no documented bound", l)
		}
	}
}

// TestDescribed: every described metric is exported. The registry refuses an exported metric without a description.
func TestDescribed(t *testing.T) {
	families, err := New(busySource(t)).Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := 0
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "delaybroker_") {
			exported++
		}
	}
	all := make(chan *prometheus.Desc, 1000)
	(&collector{}).Describe(all)
	if len(all) != exported {
		t.Errorf("%d metrics are described, and %d exported; want equal numbers", len(all), exported)
	}
}
