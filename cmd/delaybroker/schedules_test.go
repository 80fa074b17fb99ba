package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/operation"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/store"
	"delaybroker/test/natstest"
)

// streamsOnly creates the streams, and runs no broker. The commands use JetStream directly.
func streamsOnly(t *testing.T) *testServer {
	t.Helper()
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_TIMERS", "on")
	t.Setenv("DELAY_MAX_DELAY", "3650d")
	o.must("provision")
	return o
}

// TestSchedulesVerbs checks the output and the exit code of each outcome of schedules, without a broker.
func TestSchedulesVerbs(t *testing.T) {
	o := streamsOnly(t)
	in := func(args string, rest ...string) []string {
		return append(append([]string{"schedules"}, strings.Fields(args)...), rest...)
	}
	set := decode[change.Answer](t, o.must(in("add nightly --target reports.run --missed all --jitter 5m --json --tz",
		"Europe/Berlin", "--cron", "0 3 * * *", "-H", "X-Kind: nightly", `{"kind":"nightly"}`)...))
	if set.Outcome != timer.Pending || set.Key != "nightly" || set.Due.Minute() > 4 {
		t.Errorf("add prints %+v", set)
	}
	duplicate := in("add nightly --target reports.run --every 15m")
	wantOutcome(t, o, 5, "conflict", duplicate...)
	wantOutcome(t, o, 0, "pending", append(duplicate, "--replace")...)
	wantOutcome(t, o, 0, "pending", in("add nightly --target reports.run --replace --missed all --jitter 5m --tz",
		"Europe/Berlin", "--cron", "0 3 * * *", "-H", "X-Kind: nightly", `{"kind":"nightly"}`)...)
	o.must(in("add pulse --every 15m --target reports.pulse --first 2036-01-01T00:05:00Z --rounds 3 tick")...)
	o.must("pub", "reports.run", "once", "--in", "1h", "--key", "once")

	rows := strings.Split(strings.TrimSpace(o.must(in("ls")...)), "\n")
	if len(rows) != 3 {
		t.Fatalf("ls prints %q", rows)
	}
	wantRows(t, rows, [][]string{
		{"NAME", "TARGET", "RECURS", "ROUND", "STATE", "DUE"},
		{"nightly", "reports.run", "cron 0 3 * * * Europe/Berlin", " 1 "},
		{"pulse", "reports.pulse", "every 15m", " 1 ", "2036-01-01T00:05:00Z"},
	})
	if got := o.must(in("ls --name nothing*")...); got != "no schedules\n" {
		t.Errorf("ls without schedules prints %q", got)
	}
	all := decodeLines[store.Row](t, o.must(in("ls --target reports.pulse --json")...))
	if len(all) != 1 || all[0].Recurring == nil || all[0].Recurring.Table != "every 15m" || all[0].Size != 4 {
		t.Errorf("ls --json prints %+v", all)
	}
	shown := o.must(in("show nightly")...)
	wantRows(t, []string{shown}, [][]string{{
		"cron 0 3 * * * Europe/Berlin", "state         pending", "round         1", "missed", "all", "jitter", "5m",
		"X-Kind: nightly",
		"body, 18 bytes\n{\"kind\":\"nightly\"}",
	}})
	view := decode[operation.Timer](t, o.must(in("show pulse --json")...))
	if view.Key != "pulse" || view.Recurring.Table != "every 15m" || view.Rounds != 3 || string(view.Payload) != "tick" {
		t.Errorf("show --json prints %+v", view)
	}
	wantOutcome(t, o, 4, "not_found", in("show once")...) // "once" is a timer that does not recur
	wantOutcome(t, o, 4, "not_found", in("rm nobody")...)
	wantOutcome(t, o, 0, "cancelled", in("rm pulse")...)
	wantOutcome(t, o, 4, "not_found", in("show pulse")...)
	// The new schedule replaces the entry of an ended one.
	wantOutcome(t, o, 0, "pending", in("add pulse --every 15m --target reports.pulse")...)
	o.must(in("add pulse --every 15m --target reports.other")...)
	wantCommandError(t, 2, []string{"--target reports.other, or --target reports.pulse", "--target"}, in("rm pulse")...)
	// The target may be a word, as in timers rm.
	wantParts(t, o.must(in("show pulse reports.other")...), "reports.other", "every 15m")
	wantOutcome(t, o, 0, "cancelled", in("rm pulse reports.other")...)
	wantParts(t, o.must(in("show pulse --target reports.pulse")...), "reports.pulse", "every 15m")
}

// TestSchedulesNext: next prints the times with their zone, and the changes of clocks.
func TestSchedulesNext(t *testing.T) {
	o := streamsOnly(t)
	rows := strings.Split(strings.TrimSpace(o.must("schedules", "next", "--cron", "30 2 * * *", "--tz", "Europe/Berlin",
		"-n", "400")), "\n")
	if len(rows) != 401 {
		t.Fatalf("next -n 400 prints %d rows", len(rows))
	}
	forward := slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, "the clocks went forward by 1h") })
	back := slices.IndexFunc(rows, func(r string) bool { return strings.Contains(r, "the clocks went back by 1h") })
	if forward < 0 || back < 0 {
		t.Fatalf("no change of clocks in %q", rows)
	}
	wantRows(t, []string{rows[forward], rows[back]}, [][]string{
		{"T03:00:00+02:00", "CEST"}, // on this day, half past two does not exist
		{"T02:30:00+01:00", "CET"},  // on the day before, half past two occurs twice
	})
	o.must("schedules", "add", "pulse", "--every", "15m", "--target", "x.y", "--first", "2036-01-01T00:05:00Z",
		"--rounds", "3")
	lines := decodeLines[operation.RoundTime](t, o.must("schedules", "next", "pulse", "--json", "-n", "9"))
	var got []string
	for _, l := range lines {
		got = append(got, l.At.Format(time.RFC3339)+" "+l.Zone)
	}
	want := []string{"2036-01-01T00:05:00Z UTC", "2036-01-01T00:20:00Z UTC", "2036-01-01T00:35:00Z UTC"}
	if !slices.Equal(got, want) {
		t.Errorf("next pulse prints %q, want %q", got, want)
	}
}

// TestSchedulesUsage: wrong arguments are reported before the first request.
func TestSchedulesUsage(t *testing.T) {
	o := streamsOnly(t)
	empty := writeFile(t, "empty.yaml", "")
	for _, tt := range []struct{ args, want string }{
		{"add a --every 5m", "--target"},
		{"add a --target x", "--every"},
		{"add a --target x --every 5m --cron @daily", "one of them"},
		{"add a --target x --every soon", "--every"},
		{"add a --target x --cron 0_0_30_2_*", "--cron"},
		{"add a --target x --cron @daily --tz Berlin", "--tz: there is no zone"},
		{"add a --target x --every 5m --jitter 5m", "--jitter"},
		{"add a --target x --every 5m --rounds -1", "--rounds"},
		{"add a --target x --every 5m --missed none", "--missed"},
		{"add a --target x --every 5m --last tomorrow", "--last"},
		{"add a --target x --every 5m --first tomorrow", "--first"},
		{"add a.b --target x --every 5m", "one token"},
		{"add a --target x.* --every 5m", "wildcard"},
		{"add a --target x --every 5m -H Delay-Fired:1", "the broker writes"},
		{"add a --target x --every 1d --last 2020-01-01T00:00:00Z", "no round before"},
		{"show", "NAME"},
		{"show a.b", "one token"},
		{"ls --target a..b", "--target"},
		{"next", "want NAME"},
		{"next a --every 5m", "want NAME"},
		{"next --every 5m -n 0", "want 1 to 10000"},
		{"next --every 5m --last 2020-01-01T00:00:00Z", "--last"},
		{"apply", "-f FILE"},
		{"apply -f /nowhere/at/all", "no such file"},
		{"apply -f " + empty, "the file is empty"},
	} {
		args := strings.Fields("schedules " + tt.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		wantCommandError(t, 2, []string{tt.want}, args...)
	}
	if got := o.must("schedules", "ls"); got != "no schedules\n" {
		t.Errorf("ls prints %q", got)
	}
}

// TestSchedulesWithABroker: with a running broker, a schedule fires at its times, fires once more on request, and is
// paused and resumed.
func TestSchedulesWithABroker(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_TIMERS", "on")
	o.serve()
	sub := subscribe(t, o.nc, "reports.>")
	o.must("schedules", "add", "pulse", "--every", "1s", "--target", "reports.pulse", "tick")
	o.must("schedules", "add", "nightly", "--every", "1d", "--target", "reports.run", "night")
	wantMessage(t, sub, "tick")
	wantMessage(t, sub, "tick")
	wantOutcome(t, o, 0, "paused", "schedules", "pause", "pulse")
	wantOutcome(t, o, 0, "paused", "schedules", "pause", "pulse")
	wantParts(t, o.must("schedules", "ls"), "paused", "every 1d")
	wantParts(t, o.must("timers", "ls", "--state", "paused"), "ROUND", "every 1s ")
	if _, stderr, err := o.run("schedules", "next", "pulse"); err != nil || !strings.Contains(stderr,
		"the schedule is paused") {
		t.Errorf("next: got %q, %v", stderr, err)
	}
	wantCommandError(t, 2, []string{"resume it first"}, "timers", "move", "pulse", "reports.pulse", "--by", "5m")
	const other = "set: x\nschedules: {pulse: {every: 2s, target: reports.pulse}}\n"
	o.wantApplied(other, 5, []string{"the schedule is paused"}, "--adopt")
	wantParts(t, o.must("timers", "show", "pulse", "reports.pulse"), "every 1s\n", "round ")
	rounds := 0
	for ; rounds < 3; rounds++ {
		if _, err := sub.NextMsg(2500 * time.Millisecond); err != nil {
			break
		}
	}
	if rounds > 1 { // one round may have fired before the pause
		t.Error("the schedule fires although it is paused")
	}
	wantOutcome(t, o, 0, "fired", "schedules", "fire", "nightly")
	wantMessage(t, sub, "night")
	wantOutcome(t, o, 0, "pending", "schedules", "resume", "pulse")
	wantMessage(t, sub, "tick")
	wantOutcome(t, o, 0, "cancelled", "schedules", "rm", "pulse")
	if _, stderr, err := o.run("schedules", "next", "nightly"); err != nil || stderr != "" {
		t.Errorf("next: got %q, %v", stderr, err)
	}
	wantOutcome(t, o, 0, "moved", "timers", "move", "nightly", "reports.run", "--in", "1h")
	_, stderr, err := o.run("schedules", "next", "nightly")
	if err != nil || !strings.Contains(stderr, "was moved: it is") {
		t.Errorf("next: got %q, %v", stderr, err)
	}
	if got := o.must("timers", "move", "--all", "--target", "reports.>", "--by", "+1h"); !strings.Contains(got, "moved") ||
		strings.Contains(got, "refused") {
		t.Errorf("move --all prints %q", got)
	}
	wantOutcome(t, o, 0, "pending", "timers", "show", "nightly", "reports.run")
	o.must("pub", "reports.once", "once", "--in", "1h", "--key", "once")
	wantCommandError(t, 2, []string{"only a recurring timer"}, "schedules", "pause", "once", "--target", "reports.once")
}
