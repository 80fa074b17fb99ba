package deliver

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"delaybroker/test/natstest"
)

// TestTargetsPinNothing: a target keeps only its own subject in memory, and not the whole message from which the
// subject was taken.
func TestTargetsPinNothing(t *testing.T) {
	const count, header = 500, 64 << 10
	targets, gs := newTargets(Limits{}, NewCounts(nil)), newGroups(1, 1)
	before := natstest.Heap()
	for i := range count {
		packed := fmt.Sprintf("t%d.a.b", i) + strings.Repeat("x", header)
		subject := packed[:len(packed)-header]
		gs.group(targets.target(subject).subject, "")
	}
	if took := natstest.Heap() - before; took > count*4<<10 {
		t.Errorf("%d targets take %d bytes each", count, took/count)
	}
	runtime.KeepAlive(targets)
	runtime.KeepAlive(gs)
}
