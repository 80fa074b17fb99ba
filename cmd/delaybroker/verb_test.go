package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"delaybroker/cmd/delaybroker/terminal"
)

// startForClients runs a broker, and points the environment at it for other verbs.
func startForClients(t *testing.T) {
	t.Helper()
	embeddedEnv(t)
	r := start(t)
	t.Cleanup(func() { r.stop(t) })
	ready := r.log.await(t, "ready")
	t.Setenv("NATS_URL", ready["server"].(string))
	t.Setenv("DELAY_HTTP_ADDR", ready["http"].(string))
}

// runVerb runs a command, without a terminal.
func runVerb(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
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

func mustRunVerb(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, _, err := runVerb(t, stdin, args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out
}

// wantVerbError checks the exit code, and the text of the error.
func wantVerbError(t *testing.T, code int, parts []string, args ...string) {
	t.Helper()
	_, _, err := runVerb(t, "", args...)
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

// decodeLines reads one JSON value from each line.
func decodeLines[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(text) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("decode %q: %v", line, err)
		}
		all = append(all, v)
	}
	return all
}
