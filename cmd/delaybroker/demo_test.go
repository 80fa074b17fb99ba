package main

import (
	"os"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// The demo uses no settings and no server of the host, and removes all its files.
func TestDemo(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", "nats://127.0.0.1:1")
	t.Setenv("DELAY_LEVELS", "nonsense")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	began := time.Now()
	stdout, stderr, err := runCommand(t, "", "demo")
	if err != nil {
		t.Fatalf("got %v, want nil\n%s", err, stderr)
	}
	if took := time.Since(began); took > timeout {
		t.Errorf("took %s, want seconds", took)
	}
	wantParts(t, stdout, "delay.1s.demo.stream.a", "delayin.4s250ms.demo.core.d", "delayat.", "all 7 arrived, 0 early",
		"delayin.8s500ms.demo.stream.g", "delaybroker pub")
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("got %v (%v) left in the temporary directory, want nothing", left, err)
	}
}

func TestDemoJSON(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	natstest.ClearEnv(t)
	all := decodeLines[struct {
		Messages []struct {
			LateMS *float64 `json:"late_ms"`
		}
		Early *int
		Max   float64 `json:"max_late_ms"`
	}](t, mustRunCommand(t, "", "demo", "--json"))
	if len(all) != 1 || all[0].Early == nil || *all[0].Early != 0 {
		t.Fatalf("got %+v, want one object and no early message", all)
	}
	for _, m := range all[0].Messages {
		if m.LateMS == nil || *m.LateMS < 0 || *m.LateMS > all[0].Max {
			t.Errorf("got %+v, want a lateness of 0 to %v ms", m, all[0].Max)
		}
	}
}
