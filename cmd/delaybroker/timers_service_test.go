package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

// If a tenant may not send the requests about its own timers to JetStream, the command asks a broker, and reports
// that. The tenant can neither cancel nor list the timers of another tenant.
func TestTenantUsesTimers(t *testing.T) {
	o := newServerWithUsers(t)
	t.Setenv("DELAY_REPLY_PREFIXES", "_INBOX_orders")
	t.Setenv("DELAY_PROVISION", "create")
	login(t, "admin", "admin")
	t.Setenv("DELAY_INBOX_PREFIX", "")
	r := startReady(t)
	for _, key := range []string{"1", "2", "3"} {
		o.must("pub", "orders.x", "body", "--in", "1h", "--key", key)
	}
	o.must("pub", "payments.x", "body", "--in", "1h", "--key", "theirs")

	o.user("orders", "o")
	for _, test := range []struct {
		code    int
		outcome string
		args    string
	}{
		{0, "pending", "show 1 orders.x"},
		{0, "moved", "move 1 orders.x --by +5m"},
		{0, "moved", "move 1 orders.x --in 2h"},
		{0, "cancelled", "cancel 1 orders.x"},
		{0, "fired", "fire 2 orders.x"},
		{4, "not_found", "show nobody orders.x"},
		{5, "conflict", "cancel 3 orders.x --generation 1"},
	} {
		args := append([]string{"timers", "--json"}, strings.Fields(test.args)...)
		out, errs, err := o.run(args...)
		if exitCode(err) != test.code || !strings.Contains(errs, "asking a broker") ||
			string(decode[store.Answer](t, out).Outcome) != test.outcome {
			t.Errorf("%s: got %v, %s%s, want %s", test.args, err, out, errs, test.outcome)
		}
	}
	wantCommandError(t, 1, []string{"may not read", "delayctl.timer.cancel.theirs.payments.x"},
		"timers", "cancel", "theirs", "payments.x")
	wantCommandError(t, 1, []string{"may not read", "delayctl.timers.payments"}, "timers", "ls", "--target", "payments.>")

	o.must("pub", "orders.x", "body", "--in", "1h", "--key", "4", "--if", "absent")
	out, _, err := o.run("pub", "orders.x", "body", "--in", "1h", "--key", "4", "--if", "absent")
	if exitCode(err) != 6 || !strings.Contains(out, "unknown whether the timer was set, and whether the condition held") {
		t.Errorf("pub --if: got %v and\n%s, want the command that shows the outcome", err, out)
	}
	wantSchedulesOfTenant(t, o)

	t.Setenv("NATS_USER", "admin") // orders may not list without this grant
	t.Setenv("NATS_PASSWORD", "admin")
	a := &app{}
	f := store.Filter{Targets: []string{"orders.>"}, Key: "3", State: timer.Pending}
	l, err := a.askList(t.Context(), f, store.Page{Limit: 9})
	if err != nil || len(l.Timers) != 1 || l.Timers[0].Key != "3" {
		t.Errorf("a broker lists %+v, %v, want the pending timers of orders", l, err)
	}
	for _, verb := range []timer.Verb{timer.Move, timer.Cancel} {
		b := store.Bulk{Verb: verb, Filter: store.Filter{Targets: []string{"payments.>"}}, Page: store.Page{Limit: 9}}
		if verb == timer.Move {
			b.By = time.Minute
		}
		d, err := changeTimers(t.Context(), a.askBulk, b)
		if err != nil || d.Matched != 1 || d.Refused != 0 || len(d.Outcomes) != 1 {
			t.Errorf("a broker does %s: got %+v, %v, want one timer", verb, d, err)
		}
	}
	o.user("orders", "o")
	r.stop(t)
	wantCommandError(t, 1, []string{"may not read", "no broker answers"}, "timers", "cancel", "3", "orders.x")

	silent, err := nats.Connect(o.server.ClientURL(), nats.UserInfo("admin", "admin"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := silent.SubscribeSync("delayctl.timer.>"); err != nil || silent.Flush() != nil {
		t.Fatal(err)
	}
	out, _, err = o.run("timers", "cancel", "3", "orders.x", "--json")
	if answer := decode[store.Answer](t, out); exitCode(err) != 6 || answer.Outcome != timer.Unknown || answer.Key != "3" {
		t.Errorf("a broker receives the request, and does not answer: got %v, %s, want an unknown outcome", err, out)
	}
	wantCommandError(t, 1, []string{"no broker answered in time"}, "timers", "show", "3", "orders.x")
}

// wantSchedulesOfTenant checks that a tenant can manage its own schedule, with --target.
func wantSchedulesOfTenant(t *testing.T, o *testServer) {
	t.Helper()
	add := []string{"schedules", "add", "pulse", "--every", "1h", "--target", "orders.x", "body"}
	o.must(add...)
	out, _, err := o.run(add...)
	if exitCode(err) != 6 || !strings.Contains(out, "delaybroker timers show pulse orders.x") {
		t.Errorf("add: got %v and\n%s, want the command that shows the outcome", err, out)
	}
	for _, test := range []struct{ verb, outcome string }{
		{"show", "pending"}, {"pause", "paused"}, {"resume", "pending"}, {"fire", "fired"}, {"rm", "cancelled"},
	} {
		out, errs, err := o.run("schedules", test.verb, "pulse", "--target", "orders.x", "--json")
		if err != nil || !strings.Contains(errs, "asking a broker") ||
			string(decode[store.Answer](t, out).Outcome) != test.outcome {
			t.Errorf("%s: got %v, %s%s, want %s", test.verb, err, out, errs, test.outcome)
		}
	}
	wantCommandError(t, 1, []string{"set --target"}, "schedules", "rm", "pulse")
	wantCommandError(t, 1, []string{"delayctl.timers.orders"}, "schedules", "ls", "--target", "orders.>")
}
