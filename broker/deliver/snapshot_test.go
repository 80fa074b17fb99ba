package deliver

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// TestLeaderlessSnapshot: a stream without a leader keeps its description of the previous snapshot. A stream of the
// broker never counts as undescribed.
func TestLeaderlessSnapshot(t *testing.T) {
	var listed []description
	if err := json.Unmarshal([]byte(`[{"config":{"name":"A","subjects":["a.>"]}},
		{"config":{"name":"B","subjects":["b"],"no_ack":true}}]`), &listed); err != nil {
		t.Fatal(err)
	}
	ours := func(stream string) bool { return stream == "DELAY_10s" }
	first := newSnapshot(time.Now(), listed[:1], []string{"B"}, nil, ours)
	if !slices.Equal(first.undescribedStreams, []string{"B"}) || first.listener("b") != nil {
		t.Errorf("B was never described: undescribed %v, the listener on b is %v; want [B] and nil",
			first.undescribedStreams, first.listener("b"))
	}
	second := newSnapshot(time.Now(), listed, nil, first, ours)
	third := newSnapshot(time.Now(), nil, []string{"A", "B", "C", "DELAY_10s"}, second, ours)
	for subject, want := range map[string]listener{"a.x": {"A", true}, "b": {"B", false}} {
		if got := third.listener(subject); got == nil || *got != want {
			t.Errorf("%s: got %v, want %v", subject, got, want)
		}
	}
	if !slices.Equal(third.undescribedStreams, []string{"C"}) {
		t.Errorf("undescribed are %v, want C", third.undescribedStreams)
	}
	if (*snapshot)(nil).listener("a.x") != nil {
		t.Error("a nil snapshot has a stream")
	}
}

// TestSnapshotIsStable: if the description of a stream without a leader overlaps with those of other streams, the
// listener of a subject is the same in each snapshot: a stream with a leader, and of several the first by name.
func TestSnapshotIsStable(t *testing.T) {
	var listed []description
	if err := json.Unmarshal([]byte(`[{"config":{"name":"A","subjects":["x.>"]}},
		{"config":{"name":"D","subjects":["x.>"]}},
		{"config":{"name":"C","subjects":["x.>"]}},{"config":{"name":"B","subjects":["x.>"]}}]`), &listed); err != nil {
		t.Fatal(err)
	}
	first := newSnapshot(time.Now(), listed, nil, nil, nil)
	for range 100 {
		s := newSnapshot(time.Now(), listed[1:], []string{"A"}, first, nil)
		if got := s.listener("x.y"); got.name != "B" {
			t.Fatalf("the listener is %s, want B", got.name)
		}
	}
}
