package deliver

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"delaybroker/test/natstest"
)

// TestTargetsPinNothing: a target that is remembered takes its own bytes, and none of the message that it was named by,
// of which its subject is a part.
func TestTargetsPinNothing(t *testing.T) {
	const count, header = 500, 64 << 10
	targets, all := newTargets(Limits{}, NewCounts(nil)), newGroups(1, 1)
	before := natstest.Heap()
	for i := range count {
		packed := fmt.Sprintf("t%d.a.b", i) + strings.Repeat("x", header)
		subject := packed[:len(packed)-header]
		all.of(targets.of(subject).subject, "")
	}
	if took := natstest.Heap() - before; took > count*4<<10 {
		t.Errorf("%d targets take %d bytes each", count, took/count)
	}
	runtime.KeepAlive(targets)
	runtime.KeepAlive(all)
}
