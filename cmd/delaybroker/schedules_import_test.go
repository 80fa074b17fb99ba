package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/timer/schedules"
	"delaybroker/test/natstest"
)

// TestSchedulesImport: after the command, the schedules of a server's stream are in the broker. A schedule that the
// command does not take over stays in its stream. test/schedules checks that each round is delivered once.
func TestSchedulesImport(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_TIMERS", "on")
	wantCommandError(t, 2, []string{"--stream"}, "schedules", "import")
	wantCommandError(t, 2, []string{"DELAY_SCHEDULES"}, "schedules", "import", "--stream", "PLANS")
	cfg := jetstream.StreamConfig{Name: "PLANS", Subjects: []string{"plans.>", "orders.>"}, AllowMsgSchedules: true}
	plans, err := o.js.CreateStream(t.Context(), cfg)
	natstest.NoError(t, err)
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	for _, name := range []string{"plans.a", "plans.b", "plans.late"} {
		when := at
		if name == "plans.late" {
			when = time.Now().Add(20 * 366 * 24 * time.Hour)
		}
		if _, err := o.js.Publish(t.Context(), name, []byte("hi"), jetstream.WithScheduleAt(when),
			jetstream.WithScheduleTarget("orders.x")); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Subjects = []string{"orders.>"}
	if _, err := o.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DELAY_SCHEDULES", "plans.>=orders.>")
	o.serve()
	wantCommandError(t, 1, []string{"NOWHERE"}, "schedules", "import", "--stream", "NOWHERE")

	out, _, err := o.run("schedules", "import", "--stream", "PLANS", "--dry-run")
	if err == nil || !strings.Contains(out, "3 schedules: 2 would be taken over, 1 left, 0 in both places") ||
		!strings.Contains(out, "DELAY_MAX_DELAY") {
		t.Errorf("a dry run prints %v\n%s", err, out)
	}
	if info, err := plans.Info(context.Background()); err != nil || info.State.Msgs != 3 {
		t.Errorf("a dry run changed the stream: %+v, %v", info.State, err)
	}
	out, _, _ = o.run("schedules", "import", "--stream", "PLANS", "--json")
	results := decode[[]schedules.Result](t, out)
	if len(results) != 3 || results[0].Outcome != schedules.Taken || results[0].Subject != "plans.a" ||
		!results[0].Due.Equal(at) || results[2].Outcome != schedules.Kept {
		t.Errorf("the import prints %+v", results)
	}
	if info, err := plans.Info(context.Background()); err != nil || info.State.Msgs != 1 {
		t.Errorf("the stream still has %+v, %v", info.State, err)
	}
	timers, err := o.js.Stream(t.Context(), "DELAY_TIMERS")
	natstest.NoError(t, err)
	for _, name := range []string{"plans.a", "plans.b"} {
		if _, err := timers.GetLastMsgForSubject(t.Context(), "delaytimer._schedule."+name); err != nil {
			t.Errorf("%s is not stored: %v", name, err)
		}
	}
}
