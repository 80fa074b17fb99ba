package levels_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"delaybroker/levels"
)

func TestPlain(t *testing.T) {
	names := levels.PlainDurations()
	if got, limit := len(names), 1300; got > limit {
		t.Errorf("%d names, want at most %d, because each is a subject of the intake", got, limit)
	}
	seen := make(map[string]bool)
	for _, name := range names {
		if seen[name] {
			t.Errorf("%s comes twice", name)
		}
		seen[name] = true
		if _, err := levels.ParseDuration(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"0s", "45s", "60s", "90s", "120s", "300s", "600s", "900s", "3600s", "86400s",
		"15m", "45m", "60m", "90m", "720m", "1440m", "1h", "24h", "48h", "72h", "168h",
		"1d", "7d", "14d", "30d", "90d", "365d", "1w", "2w",
		"50ms", "100ms", "250ms", "500ms", "1000ms", "1500ms", "30000ms",
	} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
	if got, want := levels.PlainDurations(), names; !slices.Equal(got, want) {
		t.Error("a second call returns another list")
	}
}

// TestPlainIsDocumented reads the table of PROTOCOL.md and compares it with the list.
func TestPlainIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../broker/message/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(text), "### Plain durations")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$")
	run := regexp.MustCompile(`^(\d+)(?: to (\d+)(?: by (\d+))?)?$`)
	number := func(text string, fallback int) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		return fallback
	}
	var documented []string
	for _, match := range row.FindAllStringSubmatch(chapter, -1) {
		for part := range strings.SplitSeq(match[2], ", ") {
			m := run.FindStringSubmatch(part)
			if m == nil {
				t.Fatalf("cannot parse %q", part)
			}
			first := number(m[1], 0)
			for n := first; n <= number(m[2], first); n += number(m[3], 1) {
				documented = append(documented, strconv.Itoa(n)+match[1])
			}
		}
	}
	if got, want := documented, levels.PlainDurations(); !slices.Equal(got, want) {
		t.Errorf("PROTOCOL.md has %d durations, want the %d of PlainDurations", len(got), len(want))
	}
}
