package jsapi

import (
	"errors"
	"slices"
	"testing"

	"delaybroker/test/natstest"
)

// TestList reads pages of a cluster: a stream without a leader has only a name, and a stream whose peers are all
// offline has a description and a name.
func TestList(t *testing.T) {
	type named struct{ Name string }
	for _, tt := range []struct {
		name            string
		pages           []string
		all, leaderless []string
		offsets         []int
		err             error
	}{
		{name: "no stream", pages: []string{`{"total":0}`}, offsets: []int{0}},
		{
			name:  "two pages",
			pages: []string{`{"total":2,"streams":[{"name":"A"}]}`, `{"total":2,"streams":[{"name":"B"}]}`},
			all:   []string{"A", "B"}, offsets: []int{0, 1},
		},
		{
			name:  "no leader",
			pages: []string{`{"total":3,"streams":[{"name":"A"}],"missing":["B"]}`, `{"total":3,"streams":[{"name":"C"}]}`},
			all:   []string{"A", "C"}, leaderless: []string{"B"}, offsets: []int{0, 2},
		},
		{
			name:  "offline",
			pages: []string{`{"total":2,"streams":[{"name":"A"}],"missing":["A"]}`, `{"total":2,"streams":[{"name":"B"}]}`},
			all:   []string{"A", "B"}, offsets: []int{0, 1},
		},
		{
			name:    "a stream was created between the pages",
			pages:   []string{`{"total":2,"streams":[{"name":"A"}]}`, `{"total":3,"streams":[{"name":"A"}]}`},
			offsets: []int{0, 1}, err: ErrChanged,
		},
		{
			name:  "fewer streams than the total",
			pages: []string{`{"total":2,"streams":[{"name":"A"}]}`, `{"total":2}`}, all: []string{"A"}, offsets: []int{0, 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &natstest.Pages{Answers: tt.pages}
			got, leaderless, err := List(t.Context(), p, func(s named) string { return s.Name })
			var all []string
			for _, s := range got {
				all = append(all, s.Name)
			}
			if !errors.Is(err, tt.err) || !slices.Equal(all, tt.all) || !slices.Equal(leaderless, tt.leaderless) {
				t.Errorf("got %v, leaderless %v, %v; want %v, leaderless %v, %v", all, leaderless, err, tt.all, tt.leaderless,
					tt.err)
			}
			if !slices.Equal(p.Offsets, tt.offsets) {
				t.Errorf("pages began at %v, want %v", p.Offsets, tt.offsets)
			}
		})
	}
}
