package bench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A record is a target with known messages and times of arrival.
type record struct {
	arrivals []Arrival
}

func (r record) Arrived(context.Context) (n int, _ error) {
	for _, a := range r.arrivals {
		if !a.At.After(time.Now()) {
			n++
		}
	}
	return n, nil
}

func (r record) Note(_ context.Context, l *Ledger, _ uint32) error {
	for _, a := range r.arrivals {
		if !a.At.After(time.Now()) {
			l.Note(a)
		}
	}
	return nil
}

// collected runs a turn of three messages that are due after a second. Each duration in at is an arrival, by its
// lateness.
func collected(t *testing.T, at map[uint32][]time.Duration) (Report, time.Duration) {
	t.Helper()
	began := time.Now()
	due := began.Add(time.Second)
	var r record
	for number, all := range at {
		for _, late := range all {
			r.arrivals = append(r.arrivals, Arrival{Number: number, Due: due, At: due.Add(late)})
		}
	}
	plan := Plan{Scenario: Burst, Count: 3}
	report := newReport(plan)
	turn := &turn{run: &run{host: Host{Show: func(Progress) {}}, plan: plan, report: report}, target: r}
	ledger, _, err := turn.collect(t.Context(), usage{}, due)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	result, err := plan.addLedger(Result{Side: Broker, Round: 1}, ledger)
	if err != nil {
		t.Fatal(err)
	}
	report.Results = append(report.Results, result)
	return *report, took
}

func TestARunWithEverythingOnTimeIsGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, took := collected(t, map[uint32][]time.Duration{0: {0}, 1: {time.Millisecond}, 2: {100 * time.Millisecond}})
		if err := report.Err(); err != nil {
			t.Errorf("got %v, want nil", err)
		}
		if want := time.Second + 100*time.Millisecond + duplicateWait; took != want {
			t.Errorf("it was judged after %s, want %s", took, want)
		}
		if got, want := report.Results[0].Drained, 30.0; got != want {
			t.Errorf("drained: got %v/s, want %v", got, want)
		}
	})
}

// A message that does not arrive is lost after a wait.
func TestALostMessageFailsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, took := collected(t, map[uint32][]time.Duration{0: {0}, 2: {0}})
		if err := report.Err(); !errors.Is(err, ErrBroken) {
			t.Errorf("got %v, want %v", err, ErrBroken)
		}
		if got, want := report.Results[0].Tally, (Tally{Count: 3, Lost: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if took < time.Second+lossTimeout {
			t.Errorf("it was given up after %s, want %s after it was due", took, lossTimeout)
		}
	})
}

func TestAnEarlyMessageFailsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, _ := collected(t, map[uint32][]time.Duration{0: {0}, 1: {-time.Nanosecond}, 2: {0}})
		if err := report.Err(); !errors.Is(err, ErrBroken) {
			t.Errorf("got %v, want %v", err, ErrBroken)
		}
	})
}

// A copy is one more arrival, and does not replace a message that has not arrived.
func TestCopiesDoNotHideWhatIsStillToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, _ := collected(t, map[uint32][]time.Duration{0: {0, 1}, 1: {0}, 2: {10 * time.Second}})
		if got, want := report.Results[0].Tally, (Tally{Count: 3, Twice: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got, want := report.Results[0].Late.Max, 10_000.0; got != want {
			t.Errorf("the last: got %v ms, want %v", got, want)
		}
	})
}
