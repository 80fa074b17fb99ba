package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/test/natstest"
)

// TestMisspelt: an unknown command or flag is an error with the nearest known one, at each level, and without the word
// usage before it.
func TestMisspelt(t *testing.T) {
	natstest.ClearEnv(t)
	for args, want := range map[string]string{
		"ded":                              `unknown command "ded" (dead or demo?)`,
		"timers cancle k x":                `unknown command "cancle" (cancel?)`,
		"schedules aply":                   `unknown command "aply" (apply?)`,
		"levels --jsn":                     "unknown flag: --jsn (--json?)",
		"dead ls --taget x":                "unknown flag: --taget (--target?)",
		"pub x y --cron @daily":            "a recurring timer is set by delaybroker schedules add",
		"pub x y --every 1h":               "a recurring timer is set by delaybroker schedules add",
		"dead ls --nothing-of-this-sort 1": "see delaybroker dead ls --help",
	} {
		_, _, err := runCommand(t, "", strings.Fields(args)...)
		if err == nil || exitCode(err) != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
		if said := sentenceOf(errors.Join(err)); strings.Contains(said, "usage:") {
			t.Errorf("%s: the program says %q", args, said)
		}
	}
}

// TestNoServer: without a server, the error says how to get one.
func TestNoServer(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", "127.0.0.1:1")
	wantCommandError(t, 1, []string{"no servers available", "start one with delaybroker, or set NATS_URL"}, "dead", "ls")
}

// TestHelpHasGroups: each command is in one of the groups of the help.
func TestHelpHasGroups(t *testing.T) {
	help := mustRunCommand(t, "", "--help")
	for _, g := range groups {
		wantParts(t, help, "\n"+g.title+":\n")
	}
	if strings.Contains(help, "Additional Commands") {
		t.Errorf("a command is in no group:\n%s", help)
	}
}

// TestNamesAreCompleted: keys, targets, schedules, paused patterns and contexts are completed.
func TestNamesAreCompleted(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_TIMERS", "on")
	o.must("provision")
	o.must("pub", "orders.expire", "x", "--in", "1h", "--key", "order-1")
	o.must("schedules", "add", "nightly", "--every", "1h", "--target", "reports.run")
	o.must("pause", "payments.>")
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	natstest.NoError(t, os.MkdirAll(filepath.Join(home, "nats", "context"), 0o755))
	natstest.NoError(t, os.WriteFile(filepath.Join(home, "nats", "context", "operator.json"), []byte("{}"), 0o600))
	for args, want := range map[string]string{
		"timers cancel ord":         "order-1",
		"timers cancel order-1 ord": "orders.expire",
		"timers ls --target rep":    "reports.run",
		"schedules show ni":         "nightly",
		"resume pay":                "payments.>",
		"dead ls --code exp":        "expired",
		"levels --context op":       "operator",
	} {
		out, _, err := runCommand(t, "", append([]string{"__complete"}, strings.Fields(args)...)...)
		if err != nil || !slices.Contains(strings.Split(out, "\n"), want) {
			t.Errorf("%s: got %v and %q, want %s", args, err, out, want)
		}
	}
}
