package test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// TestCanary boots a server under fake time in a process of its own, because what an upgrade would break is that time
// stands still for ever.
func TestCanary(t *testing.T) {
	if os.Getenv("DELAYBROKER_CANARY") != "" {
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			started := time.Now()
			time.Sleep(time.Hour)
			if got := time.Since(started); got != time.Hour {
				t.Errorf("slept %s, want 1h", got)
			}
		})
		return
	}
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCanary$", "-test.timeout=60s")
	child.Env = append(os.Environ(), "DELAYBROKER_CANARY=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("a server does not run under fake time: see the rules in natstest, the first of them above all: %v\n%s", err, out)
	}
}
