package house

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how wide a line of Go may be. Each character counts as one column, a tab too.
const maxColumns = 120

// unbreakable finds lines that may be wider, because they cannot be broken: struct tags, URLs, and comments that draw
// with lines.
var unbreakable = regexp.MustCompile("`[a-z_]+:\"" + `|https?://|^\s*//.*[\x{2500}-\x{257f}]`)

// TestLinesFit keeps the code readable where two files are side by side, as in a review.
func TestLinesFit(t *testing.T) {
	t.Parallel()
	files := readTree(t, ".go")
	if len(files) < 100 {
		t.Errorf("got %d files, want all of the module", len(files))
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		number := 0
		for line := range strings.Lines(files[path]) {
			number++
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > maxColumns && !unbreakable.MatchString(line) {
				t.Errorf("%s:%d has %d columns, want %d at most", path, number, n, maxColumns)
			}
		}
	}
}

var (
	// bubble matches the beginning of a bubble. Several packages have a function parallel, which begins one.
	bubble = regexp.MustCompile(`(natstest|harness)\.Bubble|synctest\.Test\(|\bparallel\(t, `)
	// pooled matches the calls that take a timer out of nats.go's pool.
	pooled = regexp.MustCompile(`\.(Flush\(\)|FlushTimeout\(|Request\(|RequestMsg\(|NextMsg\()`)
)

// TestNoPooledTimersInBubbles: of bubbles that run at the same time, one that gets another's timer panics. See
// natstest.Flush.
func TestNoPooledTimersInBubbles(t *testing.T) {
	t.Parallel()
	looked := 0
	for path, text := range readTree(t, ".go") {
		inHarness := strings.HasPrefix(path, "test/harness/")
		if !inHarness && !bubble.MatchString(text) {
			continue
		}
		looked++
		text = strings.ReplaceAll(text, "natstest.Request(", "")
		for _, call := range pooled.FindAllString(text, -1) {
			t.Errorf("%s calls %s, which takes a timer out of nats.go's pool", path, call)
		}
	}
	if looked < 50 {
		t.Errorf("%d files have bubbles, want some more", looked)
	}
}
