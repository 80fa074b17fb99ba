package demo

import (
	"io"
	"slices"
	"testing"
	"time"

	"delaybroker/cmd/delaybroker/terminal"
)

// A target that gets two messages counts once, and an unknown target not at all.
func TestBoardCountsOnce(t *testing.T) {
	b := board{printer: &terminal.Printer{Out: io.Discard}, messages: examples(time.Now())}
	target := b.messages[2].Target
	for _, subject := range []string{target, target, "demo.core.unknown"} {
		b.record(arrival{subject: subject})
	}
	if got, want := b.arrived, 1; got != want {
		t.Errorf("arrived: got %d, want %d", got, want)
	}
	targets := make([]string, 0, len(b.messages))
	for _, m := range b.messages {
		targets = append(targets, m.Target)
	}
	slices.Sort(targets)
	if got := slices.Compact(targets); len(got) != len(b.messages) {
		t.Errorf("got the targets %q, want each once", got)
	}
}
