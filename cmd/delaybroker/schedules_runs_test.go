package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// show prints the last runs of one schedule, the newest first, including dead letters, and no runs of other schedules.
func TestSchedulesShowRuns(t *testing.T) {
	natstest.Long(t)
	if apart(t) {
		return
	}
	o := operateOn(t, server.Options{})
	for name, value := range map[string]string{
		"DELAY_TIMERS": "on", "DELAY_JOURNAL": "7d", "DELAY_PROVISION": "create", "DELAY_ATTEMPTS": "1",
		"DELAY_DELIVER": "stream", // a target without a stream refuses
	} {
		t.Setenv(name, value)
	}
	r := start(t)
	r.log.await(t, "ready")
	o.must("schedules", "add", "pulse", "--every", "1s", "--first", "10ms", "--target", "orders.pulse")
	o.must("schedules", "add", "other", "--every", "1s", "--first", "10ms", "--target", "orders.pulse")
	eventually(t, "two dead letters", func() bool { return o.held("DELAY_DEAD") >= 2 })
	o.createOrders()
	eventually(t, "four deliveries", func() bool { return o.held("ORDERS") >= 4 })
	o.must("schedules", "pause", "pulse")
	r.stop(t) // a stop stores the last records

	out, errs, err := o.run("schedules", "show", "pulse")
	if err != nil || !strings.Contains(out, "last runs") || !strings.Contains(errs, "in the journal") {
		t.Fatalf("got %v and\n%s%s", err, out, errs)
	}
	view := decode[inspect.Runs](t, o.must("schedules", "show", "pulse", "--json", "--runs", "100"))
	n := len(view.Runs)
	if n < 2 {
		t.Fatalf("got %+v, want two runs at least", view)
	}
	for i, run := range view.Runs {
		want := "delivered"
		if i == n-1 {
			want = "undelivered"
		}
		if run.Round != n-i || run.Outcome != want || run.Late < 0 || run.Attempts != 1 || run.Due.IsZero() {
			t.Errorf("got %+v, want round %d %s", run, n-i, want)
		}
	}
	last := decode[inspect.Runs](t, o.must("schedules", "show", "pulse", "--json", "--runs", "1"))
	if len(last.Runs) != 1 || last.Runs[0] != view.Runs[0] || !last.Complete {
		t.Errorf("the last run: got %+v, want %+v and nothing missing", last, view.Runs[0])
	}
	if none := o.must("schedules", "show", "pulse", "--runs", "0"); strings.Contains(none, "last runs") {
		t.Errorf("no runs: got\n%s", none)
	}
	wantVerbError(t, 2, []string{"--runs"}, "schedules", "show", "pulse", "--runs", "-1")
	if err := o.js.DeleteStream(t.Context(), "DELAY_JOURNAL"); err != nil {
		t.Fatal(err)
	}
	if out, errs, err := o.run("schedules", "show", "pulse"); err != nil || !strings.Contains(out, "pulse") ||
		!strings.Contains(errs, "the last runs are unknown: ") || !strings.Contains(errs, "DELAY_JOURNAL=7d") {
		t.Errorf("without a journal: got %v and\n%s%s", err, out, errs)
	}
}
