package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"delaybroker/broker/timer/store"
	"delaybroker/cmd/delaybroker/schedules"
	"delaybroker/test/natstest"
)

// apply applies a file, and returns the last line and the exit code.
func (o *testServer) apply(text string, args ...string) (out string, code int) {
	o.t.Helper()
	file := writeFile(o.t, "s.yaml", text)
	out, errs, err := o.run(append([]string{"schedules", "apply", "-f", file}, args...)...)
	if err != nil {
		out += errs + err.Error()
	}
	return out, exitCode(err)
}

func (o *testServer) wantApplied(text string, code int, parts []string, args ...string) {
	o.t.Helper()
	out, got := o.apply(text, args...)
	if got != code {
		o.t.Errorf("apply %q ends with %d, want %d\n%s", args, got, code, out)
	}
	wantParts(o.t, out, parts...)
}

// TestSchedulesApply applies a file twice, then changes and removes its schedules. No other schedule changes.
func TestSchedulesApply(t *testing.T) {
	o := streamsOnly(t)
	o.must("schedules", "add", "byhand", "--every", "1h", "--target", "x.hand")
	o.must("pub", "x.once", "once", "--in", "1h", "--key", "once")
	const first = "set: reports\nschedules:\n  a: {every: 15m, target: x.a, body: one}\n" +
		"  b: {cron: '@daily', target: x.b}\n"
	o.wantApplied(first, 0, []string{"+ a  x.a  every 15m\n", "+ b  x.b  cron @daily", "2 to add"}, "--dry-run")
	if got := o.must("schedules", "ls", "--set", "reports"); got != "no schedules\n" {
		t.Errorf("a dry run made %q", got)
	}
	o.wantApplied(first, 0, []string{"set reports: 2 added, 0 changed, 0 removed, 0 unchanged\n"})
	o.wantApplied(first, 0, []string{"set reports: 0 added, 0 changed, 0 removed, 2 unchanged\n"})
	o.wantApplied("set: bills\nschedules:\n  c: {every: 1h, target: x.c}\n  a: {every: 15m, target: x.a, body: one}\n", 5,
		[]string{"+ c ", "! a ", "already exists, in the set reports", "1 added"})

	const second = "set: reports\nschedules:\n  a: {every: 15m, target: x.a, body: two}\n" +
		"  b: {cron: '@daily', target: x.moved}\n  byhand: {every: 1h, target: x.hand}\n"
	o.wantApplied(second, 5, []string{
		"~ a ", "body: one -> two", "+ b  x.moved", "- b  x.b", "! byhand", "already exists, without a set",
		"1 added, 1 changed, 1 removed",
	})
	o.wantApplied(second, 0, []string{"~ byhand", "set: none -> reports", "0 added, 1 changed, 0 removed, 2"}, "--adopt")
	wantParts(t, o.must("schedules", "show", "byhand"), "reports")

	const none = "set: reports\nschedules: {}\n"
	o.wantApplied(none, 2, []string{"the file would remove all 3", "--remove-all", "nothing was changed"})
	o.wantApplied(none, 0, []string{"0 removed"}, "--prune=false")
	o.wantApplied(none, 0, []string{"3 to remove"}, "--remove-all", "--dry-run")
	o.wantApplied(none, 0, []string{"3 removed"}, "--remove-all")
	if got := decodeLines[store.Row](t, o.must("schedules", "ls", "--json")); len(got) != 1 || got[0].Key != "c" {
		t.Errorf("the remaining schedules are %+v", got)
	}
	wantParts(t, o.must("timers", "ls", "--json"), `"once"`)
}

// TestSchedulesApplyContinues: after a failed change, apply still makes the other changes. The exit code reports the
// failure.
func TestSchedulesApplyContinues(t *testing.T) {
	o := streamsOnly(t)
	large := "'" + strings.Repeat("x", 1<<20) + "'"
	text := "set: reports\nschedules:\n  a: {every: 1d, target: x.a, body: " + large + "}\n  b: {every: 1h, target: x.b}\n"
	out, code := o.apply(text)
	if code != 1 || !strings.Contains(out, "+ b ") || !strings.Contains(out, "not changed") {
		t.Errorf("got exit code %d:\n%.2000s", code, out)
	}
	lines, code := o.apply(text, "--json")
	got := decodeLines[schedules.Decision](t, lines[:strings.LastIndex(lines, "}")+1])
	if code != 1 || len(got) != 2 || got[1].Action != schedules.Same {
		t.Errorf("with --json: exit code %d, %+v", code, got)
	}
}

// TestSchedulesApplyConcurrently: concurrent runs of one file do no harm. Each schedule is added once, and all runs
// succeed.
func TestSchedulesApplyConcurrently(t *testing.T) {
	o := streamsOnly(t)
	var text strings.Builder
	text.WriteString("set: reports\nschedules:\n")
	const n, runs = 20, 6
	for i := range n {
		fmt.Fprintf(&text, "  s%d: {every: 15m, target: x.s%d}\n", i, i)
	}
	var running sync.WaitGroup
	var mu sync.Mutex // guards added
	added := 0
	for range runs {
		running.Go(func() {
			out, code := o.apply(text.String(), "--json")
			if code != 0 {
				t.Errorf("got exit code %d: %s", code, out)
			}
			mu.Lock()
			defer mu.Unlock()
			added += strings.Count(out, `"what":"add"`)
		})
	}
	running.Wait()
	info, err := o.js.Stream(t.Context(), "DELAY_TIMERS")
	natstest.NoError(t, err)
	if last := info.CachedInfo().State.LastSeq; last != n || added != n {
		t.Errorf("%d entries are stored and %d reported, want %d", last, added, n)
	}
}
