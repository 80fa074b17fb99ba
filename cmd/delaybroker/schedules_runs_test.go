package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// TestSchedulesShowRuns: show lists the last runs of one schedule, the newest first, including runs that became dead
// letters. It lists no runs of other schedules.
func TestSchedulesShowRuns(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	for name, value := range map[string]string{
		"DELAY_TIMERS": "on", "DELAY_JOURNAL": "7d", "DELAY_PROVISION": "create", "DELAY_ATTEMPTS": "1",
		"DELAY_DELIVER": "stream", // a target without a stream refuses
	} {
		t.Setenv(name, value)
	}
	r := startReady(t)
	o.must("schedules", "add", "pulse", "--every", "1s", "--first", "10ms", "--target", "orders.pulse")
	o.must("schedules", "add", "other", "--every", "1s", "--first", "10ms", "--target", "orders.pulse")
	eventually(t, "two dead letters", func() bool { return o.messageCount("DELAY_DEAD") >= 2 })
	o.createOrders()
	eventually(t, "four deliveries", func() bool { return o.messageCount("ORDERS") >= 4 })
	o.must("schedules", "pause", "pulse")
	r.stop(t) // a stop stores the last records

	out, errs, err := o.run("schedules", "show", "pulse")
	if err != nil || !strings.Contains(out, "bytes       0\n\nlast runs\nROUND") ||
		!strings.Contains(errs, "in the journal") {
		t.Fatalf("got %v and\n%s%s", err, out, errs)
	}
	view := decode[inspect.Runs](t, o.must("schedules", "show", "pulse", "--json", "--runs", "100"))
	n := len(view.Runs)
	if n < 2 {
		t.Fatalf("got %+v, want at least two runs", view)
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
		t.Errorf("the last run: got %+v, want %+v and a complete answer", last, view.Runs[0])
	}
	if none := o.must("schedules", "show", "pulse", "--runs", "0"); strings.Contains(none, "last runs") {
		t.Errorf("no runs: got\n%s", none)
	}
	wantCommandError(t, 2, []string{"--runs"}, "schedules", "show", "pulse", "--runs", "-1")
	natstest.NoError(t, o.js.DeleteStream(t.Context(), "DELAY_JOURNAL"))
	if out, errs, err := o.run("schedules", "show", "pulse"); err != nil || !strings.Contains(out, "pulse") ||
		!strings.Contains(out, "runs unknown") || !strings.Contains(out, "DELAY_JOURNAL=7d") {
		t.Errorf("without a journal: got %v and\n%s%s", err, out, errs)
	}
}
