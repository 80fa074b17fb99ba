package timers

import (
	"testing"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// parallel runs f as a parallel subtest, under fake time: see natstest.Bubble.
func parallel(t *testing.T, name string, f func(t *testing.T, s *natstest.Server)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		natstest.Bubble(t, f)
	})
}
