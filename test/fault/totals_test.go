//go:build linux

package fault

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"delaybroker/test/fault/history"
)

type totals struct {
	mu sync.Mutex

	Runs         int           `json:"runs"`
	Failed       int           `json:"failed"`       // runs with violations
	Unjudged     int           `json:"unjudged"`     // runs that could not be judged
	FailedSeeds  []uint64      `json:"failed_seeds"` // the seeds of failed and of unjudged runs
	Acknowledged int           `json:"acknowledged"`
	Delivered    int           `json:"delivered"`
	Recovered    int           `json:"recovered"` // delivered messages without an acknowledgement
	Lost         int           `json:"lost"`
	Early        int           `json:"early"`
	StoredTwice  int           `json:"stored_twice"`
	SentAgain    int           `json:"sent_again"`
	CleanRuns    int           `json:"clean_runs"`
	CleanAgain   int           `json:"clean_sent_again"`   // in runs whose faults excuse no duplicate
	SettledAgain int           `json:"settled_sent_again"` // in all runs, long after one fault and before the next
	Violations   int           `json:"violations"`
	NoOrder      int           `json:"no_order"`
	Worst        time.Duration `json:"worst_late_ns"`
	SlowestStart time.Duration `json:"slowest_start_ns"`

	Timers history.Timers `json:"timers"`
}

func (s *totals) add(r *history.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Runs++
	s.Acknowledged += r.Acked
	s.Delivered += r.Delivered
	s.Recovered += r.Recovered
	s.Lost += r.Lost
	s.Early += r.Count(history.Early)
	s.SentAgain += r.Repeats
	s.StoredTwice += r.Copies
	s.SettledAgain += r.Settled
	s.Worst = max(s.Worst, r.Worst)
	s.SlowestStart = max(s.SlowestStart, r.SlowestStart)
	s.Violations += len(r.Violations)
	s.NoOrder += r.Count(history.NoOrder)
	s.Timers.Add(r.Timers)
	if r.Conditions.Clean {
		s.CleanRuns++
		s.CleanAgain += r.Repeats
	}
	if len(r.Violations) > 0 {
		s.Failed++
		s.FailedSeeds = append(s.FailedSeeds, r.Conditions.Seed)
	}
}

func (s *totals) unjudged(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Runs++
	s.Unjudged++
	s.FailedSeeds = append(s.FailedSeeds, seed)
}

func (s *totals) String() string {
	return fmt.Sprintf("%d runs, %d failed, %d without a judgement: %d acknowledged, %d delivered (%d of them not "+
		"acknowledged), %d lost, %d early, "+
		"%d sent again, %d stored twice; %d of the runs had only faults that excuse no duplicate: "+
		"%d sent again; late at most %s, a broker ready after %s at most; %s; %d without an order that explains them",
		s.Runs, s.Failed, s.Unjudged, s.Acknowledged, s.Delivered, s.Recovered, s.Lost, s.Early, s.SentAgain, s.StoredTwice,
		s.CleanRuns, s.CleanAgain,
		s.Worst.Round(time.Millisecond), s.SlowestStart.Round(time.Millisecond), s.Timers,
		s.NoOrder)
}

// run executes a plan, and fails the test if a guarantee was violated.
func (s *totals) run(t *testing.T, p plan) *history.Report {
	t.Helper()
	report, err := p.run(*keep, *keep != "")
	if err != nil {
		s.unjudged(p.seed)
		t.Fatal(err)
	}
	s.add(report)
	t.Log(report)
	if len(report.Violations) > 0 {
		t.Errorf("%d violations; to judge the history again: go run ./test/fault/check %s", len(report.Violations),
			report.Kept)
	}
	return report
}

// random executes random plans. It prints a line for each judged run, and then the totals as JSON and as text.
func (s *totals) random(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	end := time.Now().Add(*duration)
	for n := uint64(0); n < uint64(max(*runs, 1)) || time.Now().Before(end); n++ {
		p := randomPlan(first+n, *brokers, testedPrograms)
		t.Run(fmt.Sprintf("seed %d", p.seed), func(t *testing.T) {
			began := time.Now()
			fmt.Println(line(s.run(t, p), time.Since(began)))
		})
	}
	summary, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s\n%s\n", summary, s)
}

func line(r *history.Report, took time.Duration) string {
	clean := "-"
	if r.Conditions.Clean {
		clean = fmt.Sprint(r.Repeats)
	}
	verdict := "ok"
	if n := len(r.Violations); n > 0 {
		verdict = fmt.Sprintf("%d VIOLATIONS, kept in %s", n, r.Kept)
	}
	return strings.Join([]string{
		fmt.Sprintf("seed %d: %s", r.Conditions.Seed, verdict), fmt.Sprintf("%d acknowledged", r.Acked),
		fmt.Sprintf("%d delivered", r.Delivered), fmt.Sprintf("%d lost", r.Lost),
		fmt.Sprintf("%d early", r.Count(history.Early)), fmt.Sprintf("%d stored twice", r.Copies),
		fmt.Sprintf("%d timers", r.Timers.Keys),
		fmt.Sprintf("%s sent again without an excuse", clean), fmt.Sprintf("%d sent again", r.Repeats),
		fmt.Sprintf("late at most %s", r.Worst.Round(time.Millisecond)), fmt.Sprintf("took %s", took.Round(time.Second)),
		r.Conditions.Name,
	}, "; ")
}
