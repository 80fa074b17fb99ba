package house

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the maximum width of a line of Go. Each character counts as one column, also a tab.
const maxColumns = 120

// unbreakable matches lines that may be wider, because they cannot be broken: struct tags, URLs, and diagrams.
var unbreakable = regexp.MustCompile("`[a-z_]+:\"" + `|https?://|^\s*//.*[\x{2500}-\x{257f}]`)

// TestLinesFit: no line is too wide for two files side by side, as in a review.
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
	bubble = regexp.MustCompile(`(natstest|harness)\.(Bubble|Subtest)|synctest\.Test\(|\bparallel\(t, `)
	// pooled matches the calls that take a timer out of nats.go's pool.
	pooled = regexp.MustCompile(`\.(Flush\(\)|FlushTimeout\(|Request\(|RequestMsg\(|NextMsg\()`)
)

// TestNoPooledTimersInBubbles: no test with a bubble calls a function that takes a timer out of nats.go's pool. If two
// bubbles run at the same time, a bubble that gets the timer of the other one panics. See natstest.Flush.
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
		t.Errorf("%d files have bubbles, want at least 50", looked)
	}
}
