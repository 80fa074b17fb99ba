package bench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fakeTarget is a target with these arrivals. An arrival is visible from its time on.
type fakeTarget []Arrival

func (f fakeTarget) Arrived(context.Context) (n int, _ error) {
	for _, a := range f {
		if !a.Time.After(time.Now()) {
			n++
		}
	}
	return n, nil
}

func (f fakeTarget) Note(_ context.Context, l *Ledger, _ uint32) error {
	for _, a := range f {
		if !a.Time.After(time.Now()) {
			l.Note(a)
		}
	}
	return nil
}

// collectTurn collects a turn of three messages that are due after a second. Lateness has the lateness of each arrival,
// by the number of the message. CollectTurn returns the report, and the duration of the collection.
func collectTurn(t *testing.T, lateness map[uint32][]time.Duration) (Report, time.Duration) {
	t.Helper()
	startTime := time.Now()
	due := startTime.Add(time.Second)
	var target fakeTarget
	for number, durations := range lateness {
		for _, late := range durations {
			target = append(target, Arrival{Number: number, Due: due, Time: due.Add(late)})
		}
	}
	plan := Plan{Scenario: Burst, Count: 3}
	report := newReport(plan)
	turn := &turn{run: &run{host: Host{Show: func(Progress) {}}, plan: plan, report: report}, target: target}
	ledger, _, err := turn.collect(t.Context(), usage{}, due)
	if err != nil {
		t.Fatal(err)
	}
	elapsed := time.Since(startTime)
	result, err := plan.addLedger(Result{Side: Broker, Round: 1}, ledger)
	if err != nil {
		t.Fatal(err)
	}
	report.Results = append(report.Results, result)
	return *report, elapsed
}

func TestTurnOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latenesses := map[uint32][]time.Duration{0: {0}, 1: {time.Millisecond}, 2: {100 * time.Millisecond}}
		report, elapsed := collectTurn(t, latenesses)
		if err := report.Err(); err != nil {
			t.Errorf("got %v, want nil", err)
		}
		if want := time.Second + 100*time.Millisecond + duplicateWait; elapsed != want {
			t.Errorf("the collecting took %s, want %s", elapsed, want)
		}
		if got, want := report.Results[0].Drained, 30.0; got != want {
			t.Errorf("drained: got %v/s, want %v", got, want)
		}
	})
}

// A message is lost if lossTimeout passes after the last arrival, and the message has not arrived.
func TestTurnWithLostMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, elapsed := collectTurn(t, map[uint32][]time.Duration{0: {0}, 2: {0}})
		if err := report.Err(); !errors.Is(err, ErrBroken) {
			t.Errorf("got %v, want %v", err, ErrBroken)
		}
		if got, want := report.Results[0].Tally, (Tally{Count: 3, Lost: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if elapsed < time.Second+lossTimeout {
			t.Errorf("the collecting took %s, want %s after the due time", elapsed, lossTimeout)
		}
	})
}

// A message that is late by less than lossTimeout is not lost, even if the wait began long before the due time.
func TestWaitBeginsLongBeforeDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := time.Now().Add(2 * lossTimeout)
		target := fakeTarget{{Due: due, Time: due.Add(lossTimeout - time.Second)}}
		ledger, err := Wait{Target: target, Count: 1, Due: due}.Ledger(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := ledger.Tally(), (Tally{Count: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestTurnWithEarlyMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, _ := collectTurn(t, map[uint32][]time.Duration{0: {0}, 1: {-time.Nanosecond}, 2: {0}})
		if err := report.Err(); !errors.Is(err, ErrBroken) {
			t.Errorf("got %v, want %v", err, ErrBroken)
		}
	})
}

// A duplicate does not count as a missing message: collect waits for the missing message.
func TestTurnWithDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report, _ := collectTurn(t, map[uint32][]time.Duration{0: {0, 1}, 1: {0}, 2: {10 * time.Second}})
		if got, want := report.Results[0].Tally, (Tally{Count: 3, Twice: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got, want := report.Results[0].Late.Max, 10_000.0; got != want {
			t.Errorf("maximum lateness: got %v ms, want %v", got, want)
		}
	})
}
