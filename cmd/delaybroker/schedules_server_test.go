package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// TestVerbsOnServerSchedules: the commands work on schedules in nats-server's format, by the names in the lists, one by
// one and with --all. A dry run counts the timers that the real run changes.
func TestVerbsOnServerSchedules(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_TIMERS", "on")
	t.Setenv("DELAY_SCHEDULES", "schedules.>=orders.>")
	o.serve()
	sub := subscribe(t, o.nc, "orders.>")
	plan := func(name string, when jetstream.PublishOpt) {
		t.Helper()
		to := jetstream.WithScheduleTarget("orders.expire")
		if _, err := o.js.Publish(t.Context(), "schedules."+name, []byte(name), when, to); err != nil {
			t.Fatal(err)
		}
	}
	in := jetstream.WithScheduleAt(time.Now().Add(time.Hour))
	for _, name := range []string{"shown", "moved", "fired", "gone"} {
		plan(name, in)
	}
	plan("every", jetstream.WithScheduleEvery(time.Hour))
	o.must("pub", "orders.expire", "named", "--in", "1h", "--key", "named")

	rows := strings.Split(strings.TrimSpace(o.must("timers", "ls", "--target", "orders.>")), "\n")
	if len(rows) != 7 {
		t.Fatalf("timers ls --target prints %q, want six", rows)
	}
	wantRows(t, rows[1:2], [][]string{{"_schedule.schedules.shown", "orders.expire", "pending"}})
	if got := o.must("pending", "ls", "--target", "orders.expire"); strings.Count(got, "orders.expire") != 6 {
		t.Errorf("pending ls --target prints %q, want six", got)
	}
	wantParts(t, o.must("ahead", "--target", "orders.>", "--json"), `"pending":6`, `"exact":true`)
	wantOutcome(t, o, 0, "pending", "timers", "show", "_schedule.schedules.shown", "orders.expire")
	wantOutcome(t, o, 5, "conflict", "timers", "cancel", "_schedule.schedules.gone", "orders.other")
	wantOutcome(t, o, 0, "cancelled", "timers", "cancel", "_schedule.schedules.gone", "orders.expire")
	wantOutcome(t, o, 0, "moved", "timers", "move", "_schedule.schedules.moved", "orders.expire", "--by", "+1h")
	wantOutcome(t, o, 0, "fired", "timers", "fire", "_schedule.schedules.fired", "orders.expire")
	wantMessage(t, sub, "fired")

	every := "_schedule.schedules.every"
	wantRows(t, []string{o.must("schedules", "ls")}, [][]string{{every, "orders.expire", "every 1h"}})
	wantRows(t, []string{o.must("schedules", "show", every)}, [][]string{{every, "orders.expire", "body, 5 bytes\nevery"}})
	wantOutcome(t, o, 4, "not_found", "schedules", "show", every, "--target", "orders.other")
	if got := o.must("schedules", "next", every, "-n", "2"); strings.Count(got, "\n") != 3 {
		t.Errorf("schedules next prints %q, want two times", got)
	}
	wantOutcome(t, o, 0, "paused", "schedules", "pause", every)
	wantOutcome(t, o, 0, "pending", "schedules", "resume", every)
	wantOutcome(t, o, 0, "fired", "schedules", "fire", every)
	wantMessage(t, sub, "every")

	for _, verb := range [][]string{{"move", "--by", "+5m"}, {"cancel"}} {
		all := append([]string{"timers", verb[0], "--all", "--target", ">"}, verb[1:]...)
		outcome := map[string]string{"move": "moved", "cancel": "cancelled"}[verb[0]]
		if got := o.must(append(all, "--dry-run")...); !strings.HasSuffix(strings.TrimSpace(got), " 4") {
			t.Errorf("%q --dry-run prints %q, want four", all, got)
		}
		if got := o.must(all...); !strings.Contains(got, outcome) || !strings.HasSuffix(strings.TrimSpace(got), " 4") {
			t.Errorf("%q prints %q, want four", all, got)
		}
	}
	if got := o.must("timers", "ls"); got != "no timers\n" {
		t.Errorf("at the end, timers ls prints %q", got)
	}
	// The outcome of a repeated cancel is the same until DELAY_TIMER_HISTORY has passed.
	wantOutcome(t, o, 0, "cancelled", "schedules", "rm", every)
}
