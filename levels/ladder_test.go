package levels_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"delaybroker/levels"
)

func mustParse(t testing.TB, spec string) levels.Ladder {
	t.Helper()
	l, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestParse(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"1s", "1s"},
		{" 1h\t5m,1s,\n30s ", "1s 30s 5m 1h"},
		{"1500ms 366d", "1500ms 366d"},
		{"60s 90m 1w", "60s 90m 1w"}, // names keep their spelling
		{" rocketmq ", "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"},
		{"short", "1s 5s 30s 2m 10m 1h 6h 1d"},
		{"default", levels.Default().String()},
	}
	for _, tt := range tests {
		l := mustParse(t, tt.spec)
		if got, want := l.String(), tt.want; got != want {
			t.Errorf("Parse(%q) = %q, want %q", tt.spec, got, want)
		}
		if got, want := mustParse(t, l.String()).String(), l.String(); got != want {
			t.Errorf("String does not parse to itself: got %q, want %q", got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		spec string
		want []string // one for each problem
	}{
		{"", []string{"no level"}},
		{" , ", []string{"no level"}},
		{"1s fast", []string{`level "fast"`}},
		{"1s 15", []string{`level "15"`}},
		{"1s 1h30m", []string{`level "1h30m": write one number and unit`}},
		{"1s default", []string{`level "default"`}},
		{"0s 1s", []string{`level "0s": at least 1s`}},
		{"999ms", []string{`level "999ms": at least 1s`}},
		{"1s 367d", []string{`level "367d": at most 366d`}},
		{"1m 5s 60s", []string{`levels "1m" and "60s" are equally long`}},
		{"1s 1s", []string{`levels "1s" and "1s" are equally long`}},
		{"1d 24h 1440m", []string{`levels "1d" and "24h"`, `levels "24h" and "1440m"`}},
		{manyLevels(levels.MaxLevels + 1), []string{"65 levels: keep at most 64"}},
		{"10ms 1M 1h30m 60s 400d 1m", []string{`"10ms"`, `"1M"`, `"1h30m"`, `"400d"`, `"60s" and "1m"`}},
	}
	for _, tt := range tests {
		l, err := levels.Parse(tt.spec)
		if !errors.Is(err, levels.ErrLadder) {
			t.Errorf("Parse(%q) = %q, %v; want ErrLadder", tt.spec, l, err)
			continue
		}
		if got, want := len(strings.Split(err.Error(), "\n")), len(tt.want); got != want {
			t.Errorf("Parse(%q): %d problems, want %d: %v", tt.spec, got, want, err)
		}
		for _, want := range tt.want {
			if got := err.Error(); !strings.Contains(got, want) {
				t.Errorf("Parse(%q): error %q does not say %q", tt.spec, got, want)
			}
		}
	}
	if _, err := levels.Parse(manyLevels(levels.MaxLevels)); err != nil {
		t.Errorf("%d levels: %v", levels.MaxLevels, err)
	}
}

func manyLevels(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%ds", i+1))
	}
	return strings.Join(names, ",")
}

func TestDefault(t *testing.T) {
	l := levels.Default()
	if got, limit := len(l.Levels()), 32; got > limit {
		t.Errorf("%d levels, want at most %d, because each is a stream", got, limit)
	}
	for _, want := range mustParse(t, "rocketmq").Levels() {
		if got, ok := l.Lookup(want.Name); !ok || got != want {
			t.Errorf("Lookup(%q) = %v, %v; want RocketMQ's level", want.Name, got, ok)
		}
	}
	if _, ok := l.Next(l.Horizon()); !ok {
		t.Error("no level at the horizon")
	}
}

func TestHorizon(t *testing.T) {
	tests := []struct {
		spec string
		want time.Duration
	}{
		{"default", 3 * time.Second},
		{"rocketmq", 3 * time.Second},
		{"1s", 3 * time.Second},
		{"2999ms 1h", 3 * time.Second},
		{"3s 1h", 3 * time.Second},
		{"3001ms 1h", 3001 * time.Millisecond},
		{"5s 10s", 5 * time.Second},
		{"1m", time.Minute},
	}
	for _, tt := range tests {
		if got, want := mustParse(t, tt.spec).Horizon(), tt.want; got != want {
			t.Errorf("ladder %q: horizon %v, want %v", tt.spec, got, want)
		}
	}
}

func TestLevelsIsACopy(t *testing.T) {
	l := mustParse(t, "1s 5s")
	l.Levels()[0] = levels.Level{Name: "9s", Delay: 9 * time.Second}
	if got, want := l.String(), "1s 5s"; got != want {
		t.Errorf("after a change of the slice, the ladder is %q, want %q", got, want)
	}
}

// TestLongestFit checks LongestFit around each level of a ladder. While memory is short, it is called for each message,
// so it must not allocate.
func TestLongestFit(t *testing.T) {
	l := mustParse(t, "1s 5s 1h")
	for _, tt := range []struct {
		d    time.Duration
		want string
		fits bool
	}{
		{-time.Second, "1s", false},
		{time.Second - 1, "1s", false},
		{time.Second, "1s", true},
		{5*time.Second - 1, "1s", true},
		{5 * time.Second, "5s", true},
		{time.Hour - 1, "5s", true},
		{1<<63 - 1, "1h", true},
	} {
		if got, fits := l.LongestFit(tt.d); got.Name != tt.want || fits != tt.fits {
			t.Errorf("LongestFit(%s) = %s, %v; want %s, %v", tt.d, got.Name, fits, tt.want, tt.fits)
		}
	}
	if got, fits := (levels.Ladder{}).LongestFit(time.Hour); fits || got != (levels.Level{}) {
		t.Errorf("without levels: %v, %v; want the zero level, false", got, fits)
	}
	if n := testing.AllocsPerRun(100, func() { l.LongestFit(time.Minute) }); n != 0 {
		t.Errorf("LongestFit allocates %.0f times, want 0", n)
	}
}

func TestLookup(t *testing.T) {
	l := mustParse(t, "1s 60s 1h")
	if got, ok := l.Lookup("60s"); !ok || got.Delay != time.Minute {
		t.Errorf("Lookup(60s) = %v, %v; want 1m", got, ok)
	}
	for _, name := range []string{"", "1m", "60S", "2h"} {
		if got, ok := l.Lookup(name); ok {
			t.Errorf("Lookup(%q) = %v, want none", name, got)
		}
	}
}

func TestShorterLevel(t *testing.T) {
	l := mustParse(t, "1s 2s 1m 1h")
	tests := []struct{ from, want string }{
		{"1h", "1m"},
		{"1m", "2s"}, // below the horizon
		{"2s", "1s"},
		{"1s", ""},
		{"30m", "1m"}, // of another ladder
		{"1d", "1h"},
	}
	for _, tt := range tests {
		from := mustParse(t, tt.from).Levels()[0]
		got, ok := l.ShorterLevel(from)
		if want := tt.want; got.Name != want || ok != (want != "") {
			t.Errorf("ShorterLevel(%s) = %q, %v; want %q", tt.from, got.Name, ok, want)
		}
	}
}

// TestLeaveTime: a message leaves a level at the end of the level, unless the remaining time is then too short for
// another hop.
func TestLeaveTime(t *testing.T) {
	l := mustParse(t, "1s 5s 10s")
	stored := time.Now()
	for _, tt := range []struct {
		name             string
		delay, due, want time.Duration
	}{
		{"due at the end of the level", 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{"due soon after", 5 * time.Second, 8 * time.Second, 8 * time.Second},
		{"hops", 5 * time.Second, 8*time.Second + 1, 5 * time.Second},
		{"hops out of the intake", 0, time.Hour, 0},
		{"held in the intake", 0, time.Second, time.Second},
		{"was due long ago", 0, -time.Hour, -time.Hour},
	} {
		if got := l.LeaveTime(stored.Add(tt.delay), stored.Add(tt.due)); !got.Equal(stored.Add(tt.want)) {
			t.Errorf("%s: leaves %s after it was stored, want %s", tt.name, got.Sub(stored), tt.want)
		}
	}
}
