package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"delaybroker/cmd/delaybroker/terminal"
)

// runCommand runs a command whose output is a pipe.
func runCommand(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{Printer: terminal.Printer{Out: &out, Err: &errs}}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	err = a.execute(t.Context(), root)
	if strings.ContainsRune(out.String()+errs.String(), '\x1b') {
		t.Errorf("%q: got an escape code in a pipe:\n%q", args, out.String()+errs.String())
	}
	return out.String(), errs.String(), err
}

func mustRunCommand(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, _, err := runCommand(t, stdin, args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out
}

// wantCommandError checks the exit code and the text of the error.
func wantCommandError(t *testing.T, code int, parts []string, args ...string) {
	t.Helper()
	_, _, err := runCommand(t, "", args...)
	if got := exitCode(err); err == nil || got != code {
		t.Errorf("%q: got exit code %d (%v), want %d", args, got, err, code)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %q, want %q in it", args, err, part)
		}
	}
}

// decodeLines decodes a JSON value from each line.
func decodeLines[T any](t *testing.T, text string) []T {
	t.Helper()
	var values []T
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("decode %q: %v", line, err)
		}
		values = append(values, v)
	}
	return values
}

// fullDisk is a writer that accepts a limited number of bytes.
type fullDisk struct{ free, writes int }

var errFullDisk = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.writes++; len(p) > d.free {
		return 0, errFullDisk
	}
	d.free -= len(p)
	return len(p), nil
}

// A command fails if its output cannot be written, and stops soon after the first failed write.
func TestOutputFails(t *testing.T) {
	for _, args := range []string{
		"version", "version --json", "size --rate 10", "size --rate 10 --json", "schedules next --every 1m",
		"schedules next --every 1m -n 1000 --json", "streams",
	} {
		out := &fullDisk{free: 10}
		a := &app{Printer: terminal.Printer{Out: out, Err: io.Discard}}
		root := a.rootCommand()
		root.SetArgs(strings.Fields(args))
		if err := a.execute(t.Context(), root); !errors.Is(err, errFullDisk) || exitCode(err) != 1 {
			t.Errorf("%s: got %v, want the error of the output", args, err)
		}
		if out.writes > 20 {
			t.Errorf("%s: %d writes, although the first failed", args, out.writes)
		}
	}
}

func TestVersionJSON(t *testing.T) {
	all := decodeLines[map[string]string](t, mustRunCommand(t, "", "version", "--json"))
	if len(all) != 1 || all[0]["nats-server"] == "" || all[0]["delaybroker"] == "" {
		t.Errorf("got %v, want the versions", all)
	}
}

func TestVersionFlag(t *testing.T) {
	if got, want := mustRunCommand(t, "", "--version"), "delaybroker "+readBuild().name()+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHelpWithArguments: help together with other arguments is a usage error, since the command does not run. A timer's
// key -h must follow --.
func TestHelpWithArguments(t *testing.T) {
	o := streamsOnly(t)
	o.must("pub", "orders.x", "x", "--in", "1h", "--key=-h")
	for _, args := range [][]string{
		{"timers", "cancel", "-h", "orders.x"}, {"schedules", "rm", "-h", "--target", "orders.x"},
		{"timers", "cancel", "--all", "--target", "orders.>", "--help"},
	} {
		wantCommandError(t, 2, []string{"the command did not run", "--"}, args...)
	}
	for _, args := range [][]string{
		{"timers", "cancel", "--help"}, {"bench", "timers", "--help"}, {"help", "timers", "cancel"}, {"-h"}, {"timers"},
	} {
		if got := o.must(args...); !strings.Contains(got, "Usage:") {
			t.Errorf("%q prints %q, want help", args, got)
		}
	}
	wantOutcome(t, o, 0, "cancelled", "timers", "cancel", "--", "-h", "orders.x")
}

// The shell's completion offers the values of a flag that has few values.
func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"__complete dead ls --code ":     "undelivered\n",
		"__complete dead ls --by ":       "reason\n",
		"__complete streams --as ":       "nack\n",
		"__complete doctor --skip ":      "durability\n",
		"__complete pub x --level ":      "30m\n",
		"__complete dead resend --code ": "too_far\n",
	} {
		if got := mustRunCommand(t, "", strings.Split(args, " ")...); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q in it", args, got, want)
		}
	}
}
