package leader

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// leaderTime matches code that takes a leader's time from an answer, and code that takes the local time for one.
var leaderTime = regexp.MustCompile(`\.(ServerTime|TimeStamp)\b|leader\.At\((time\.Now|local|m\.local)`)

// TestClocksAreListed: doc.go names the files that use a leader's time without a Clock.
func TestClocksAreListed(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "# Comparisons of clocks")
	named := make(map[string]bool)
	for _, file := range regexp.MustCompile(`[a-z]+(/[a-z_]+)+\.go`).FindAllString(list, -1) {
		if named[file] = true; !exists("../" + file) {
			t.Errorf("doc.go names %s, which does not exist", file)
		}
	}
	found := 0
	err = filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "clienttest") {
			return err
		}
		code, err := os.ReadFile(path)
		if err == nil && leaderTime.Match(code) {
			if found++; !named[strings.TrimPrefix(path, "../")] {
				t.Errorf("%s uses a leader's time without a Clock, and doc.go does not name it", path)
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("%d files use a leader's time, %v; want at least 10", found, err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
