package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
	"delaybroker/test/natstest"
)

// If a tenant may not send the requests about its own timers to JetStream, the command asks a broker, and reports
// that. The tenant can neither cancel nor list the timers of another tenant.
func TestTenantUsesTimers(t *testing.T) {
	natstest.SkipShort(t)
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
			string(decode[change.Answer](t, out).Outcome) != test.outcome {
			t.Errorf("%s: got %v, %s%s, want %s", test.args, err, out, errs, test.outcome)
		}
	}
	wantCommandError(t, 1, []string{"may not read", "delayctl.timer.cancel.theirs.payments.x"},
		"timers", "cancel", "theirs", "payments.x")
	wantCommandError(t, 1, []string{"may not read", "delayctl.timers.payments"}, "timers", "ls", "--target", "payments.>")

	o.must("pub", "orders.x", "body", "--in", "30m", "--key", "4", "--if", "absent")
	out, _, err := o.run("pub", "orders.x", "body", "--in", "30m", "--key", "4", "--if", "absent")
	if exitCode(err) != 5 || !strings.Contains(out, "conflict") {
		t.Errorf("pub --if: got %v and\n%s, want the answer of a broker", err, out)
	}
	wantSchedulesOfTenant(t, o)

	admin, err := nats.Connect(o.server.ClientURL(), nats.UserInfo("admin", "admin")) // orders may not list
	natstest.NoError(t, err)
	session, err := inspect.NewSession(admin, "$JS.API")
	natstest.NoError(t, err)
	defer session.Close()
	names, err := message.NewNames(message.DefaultPrefix)
	natstest.NoError(t, err)
	remote := remoteTimers{session, names}
	f := store.Filter{Targets: []string{"orders.>"}, Key: "3", State: timer.Pending}
	l, err := remote.List(t.Context(), f, store.Page{Limit: 9})
	if err != nil || len(l.Timers) != 1 || l.Timers[0].Key != "3" {
		t.Errorf("a broker lists %+v, %v, want the pending timers of orders", l, err)
	}
	f.Key = ""
	l, err = remote.List(t.Context(), f, store.Page{Limit: 9, ByDue: true})
	if err != nil || len(l.Timers) != 2 || l.Timers[0].Key != "4" {
		t.Errorf("a broker lists %+v, %v, want the next due timer of orders first", l, err)
	}
	for _, verb := range []timer.Verb{timer.Move, timer.Cancel} {
		b := store.Bulk{Verb: verb, Filter: store.Filter{Targets: []string{"payments.>"}}, Page: store.Page{Limit: 9}}
		if verb == timer.Move {
			b.By = time.Minute
		}
		d, err := remote.Bulk(t.Context(), b)
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
	answer := decode[change.Answer](t, out)
	if exitCode(err) != 6 || answer.Outcome != timer.Unknown || answer.Key != "3" {
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
	if exitCode(err) != 5 || !strings.Contains(out, "conflict") {
		t.Errorf("add: got %v and\n%s, want the answer of a broker", err, out)
	}
	for _, test := range []struct{ verb, outcome string }{
		{"show", "pending"}, {"pause", "paused"}, {"resume", "pending"}, {"fire", "fired"}, {"rm", "cancelled"},
	} {
		out, errs, err := o.run("schedules", test.verb, "pulse", "--target", "orders.x", "--json")
		if err != nil || !strings.Contains(errs, "asking a broker") ||
			string(decode[change.Answer](t, out).Outcome) != test.outcome {
			t.Errorf("%s: got %v, %s%s, want %s", test.verb, err, out, errs, test.outcome)
		}
	}
	wantCommandError(t, 2, []string{"set --target"}, "schedules", "rm", "pulse")
	wantCommandError(t, 1, []string{"delayctl.timers.orders"}, "schedules", "ls", "--target", "orders.>")
}
