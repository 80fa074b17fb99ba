package operate

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// TestCanary starts a server under fake time, in a process of its own: if an upgrade of NATS breaks fake time, the
// clock stands still and the process hangs.
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
		t.Fatalf("no server runs under fake time; see the rules in natstest, above all the first: %v\n%s", err, out)
	}
}
