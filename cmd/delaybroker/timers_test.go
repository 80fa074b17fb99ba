package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
)

// TestTimersVerbs checks the output and the exit code of each outcome of timers, first with a broker, which creates the
// stream, and then without one.
func TestTimersVerbs(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_TIMERS", "on")
	t.Setenv("DELAY_MAX_DELAY", "3650d")
	wantCommandError(t, 1, []string{"unless DELAY_TIMERS=off"}, "timers", "show", "order-1", "orders.x")
	t.Setenv("DELAY_PROVISION", "create")
	r := startReady(t)
	sub := subscribe(t, o.nc, "orders.>")

	set := decode[change.Answer](t, o.must("pub", "orders.x", "one", "--in", "1h", "--key", "order-1", "--if", "absent",
		"--json"))
	if set.Outcome != timer.Pending || set.Generation == 0 || set.Due.IsZero() || set.Key != "order-1" {
		t.Errorf("pub --key prints %+v", set)
	}
	generation := strconv.FormatUint(set.Generation, 10)
	wantOutcome(t, o, 5, "conflict", "pub", "orders.x", "two", "--in", "1h", "--key", "order-1", "--if", "absent")
	wantOutcome(t, o, 0, "pending", "pub", "orders.x", "two", "--at", "2036-01-02T03:04:05.678Z", "--key", "order-1",
		"--if", generation)
	out := wantOutcome(t, o, 0, "pending", "timers", "show", "order-1", "orders.x")
	wantParts(t, out, "2036-01-02")
	wantOutcome(t, o, 4, "not_found", "timers", "show", "order-2", "orders.x")
	wantOutcome(t, o, 5, "conflict", "timers", "cancel", "order-1", "orders.x", "--generation", generation)
	moved := decode[change.Answer](t, o.must("timers", "move", "order-1", "orders.x", "--by", "-5m", "--json"))
	if got := moved.Due.UTC().Format("2006-01-02T15:04:05.000"); moved.Outcome != timer.Moved ||
		got != "2036-01-02T02:59:05.678" {
		t.Errorf("move prints %+v", moved)
	}
	wantOutcome(t, o, 0, "fired", "timers", "fire", "order-1", "orders.x")
	wantMessage(t, sub, "two")
	eventually(t, "end of the timer", func() bool {
		out, _, err := o.run("timers", "show", "order-1", "orders.x")
		return err == nil && strings.Contains(out, "delivered")
	})
	wantOutcome(t, o, 3, "too_late", "timers", "cancel", "order-1", "orders.x")

	r.stop(t)
	o.manyTimersWithoutBroker()
}

// manyTimersWithoutBroker sets timers, lists them, and changes all with one command, while no broker runs.
func (o *testServer) manyTimersWithoutBroker() {
	t := o.t
	t.Helper()
	for i := range 3 {
		o.must("pub", "orders.x", "bulk", "--in", "1h", "--key", fmt.Sprint("bulk-", i))
	}
	o.must("pub", "orders.y", "other", "--in", "1h", "--key", "other")
	if got := o.must("timers", "ls", "--target", "orders.>", "--key", "bulk-*"); strings.Count(got, "pending") != 3 {
		t.Errorf("ls prints %q", got)
	}
	all := decodeLines[store.Row](t, o.must("timers", "ls", "--json"))
	if len(all) != 4 || all[0].Key != "bulk-0" || all[0].Target != "orders.x" || all[0].Size != 4 {
		t.Errorf("ls --json prints %+v", all)
	}
	o.must("schedules", "add", "bulk-series", "--every", "1h", "--target", "orders.x", "body")
	bulk := []string{"--all", "--target", "orders.>", "--key", "bulk-*"}
	once := append(bulk, "--once")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{append([]string{"cancel", "--dry-run"}, bulk...), "would be cancelled       4\n"},
		{append([]string{"cancel", "--dry-run"}, once...), "would be cancelled       3\n"},
		{append([]string{"move", "--by", "+5m"}, once...), "moved        3\n"},
		{append([]string{"cancel"}, once...), "cancelled       3\n"},
		{append([]string{"cancel"}, bulk...), "cancelled       1\n"},
		{append([]string{"cancel"}, bulk...), "no timer matches\n"},
	} {
		if got := o.must(append([]string{"timers"}, tt.args...)...); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%q prints %q, want %q", tt.args, got, tt.want)
		}
	}
	wantOutcome(t, o, 0, "cancelled", "timers", "cancel", "other", "orders.y", "--json")
}

// wantOutcome runs a command, and checks the printed outcome and the exit code.
func wantOutcome(t *testing.T, o *testServer, code int, outcome string, args ...string) string {
	t.Helper()
	out, errs, err := o.run(args...)
	if got := exitCode(err); got != code || !strings.Contains(out, outcome) {
		t.Errorf("%q ends with %d (%v), want %d\n%s%s", args, got, err, code, out, errs)
	}
	return out
}

// TestTimersUsage: wrong arguments are reported before the first request.
func TestTimersUsage(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.serve()
	for _, tt := range []struct{ args, want string }{
		{"timers show k", "KEY TARGET"},
		{"timers cancel k", "KEY TARGET"},
		{"timers cancel --all", "--target"},
		{"timers cancel k t --target x", "--target"},
		{"timers move k orders.x", "want one of in, at and by"},
		{"timers move k orders.x --in 5m --by 5m", "want one of in, at and by"},
		{"timers move k orders.x --by +", "--by"},
		{"timers move --all --target > --in 5m", "--all needs --by"},
		{"timers cancel a.b orders.x", "one token"},
		{"timers cancel _k orders.x", "begin with _"},
		{"timers cancel k orders.*", "wildcard"},
		{"timers ls --state gone", "state"},
		{"timers ls --target a..b", "--target"},
		{"timers ls --due-before tomorrow", "--due-before"},
		{"pub orders.x b --in 5m --if absent", "--key"},
		{"pub orders.x b --in 5m --key k --if 0", "--if"},
		{"pub orders.x b --level 5m --key k", "--key"},
		{"pub orders.x b --in 5m --key k --count 2", "--count"},
		{"pub orders.x b --in 5m --key k -H Delay-Fired:1", "the broker writes"},
	} {
		wantCommandError(t, 2, []string{tt.want}, strings.Fields(tt.args)...)
	}
}
