package levels_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"delaybroker/levels"
)

const day = 24 * time.Hour

func TestParseDuration(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
	}{
		{"0s", 0},
		{"0ms", 0},
		{"1ms", time.Millisecond},
		{"1500ms", 1500 * time.Millisecond},
		{"90s", 90 * time.Second},
		{"15m", 15 * time.Minute},
		{"1h30m", 90 * time.Minute},
		{"1h90m", 150 * time.Minute},
		{"1h0m5s", time.Hour + 5*time.Second},
		{"24h", day},
		{"2d12h", 60 * time.Hour},
		{"1w", 7 * day},
		{"1w2d3h4m5s6ms", 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second + 6*time.Millisecond},
		{"1m1ms", time.Minute + time.Millisecond},
		{"106751d23h47m16s854ms", math.MaxInt64 / time.Millisecond * time.Millisecond},
		{"15250w1d23h47m16s854ms", math.MaxInt64 / time.Millisecond * time.Millisecond},
	}
	for _, tt := range tests {
		got, err := levels.ParseDuration(tt.in)
		if err != nil {
			t.Errorf("ParseDuration(%q): %v", tt.in, err)
		}
		if want := tt.want; got != want {
			t.Errorf("ParseDuration(%q) = %v, want %v", tt.in, got, want)
		}
	}
}

// wrongDurations are wrong spellings, each with a part of the error, which names the repair.
var wrongDurations = []struct{ in, hint string }{
	{"", "empty"},
	{"15", "15s for seconds, 15ms for milliseconds"},
	{"1m30", "30s for seconds"},
	{"1732060800", "no unit"},
	{"1.5s", `"." is not a unit`},
	{"1e3s", `"e" is not a unit`},
	{"1h 30m", `"h " is not a unit`},
	{" 30m", "start with a digit"},
	{"30m ", `"m " is not a unit`},
	{"1h,30m", `"h," is not a unit`},
	{"5min", `"min" is not a unit`},
	{"10us", `"us" is not a unit`},
	{"1y", `"y" is not a unit`},
	{"15M", "lower case"},
	{"PT15M", "lower case"},
	{"1500MS", "lower case"},
	{"-5s", "start with a digit"},
	{"+5s", "start with a digit"},
	{"1h-30m", `"h-" is not a unit`},
	{"s", "start with a digit"},
	{"ms5", "start with a digit"},
	{"\uff11s", "start with a digit"}, // full width
	{"00:15:00", "leading zero"},
	{"0:15:00", `":" is not a unit`},
	{"00s", "leading zero"},
	{"05s", "leading zero"},
	{"1h05m", "leading zero"},
	{"30m1h", "out of order"},
	{"1ms1s", "out of order"},
	{"1h1h", "out of order"},
	{"9223372036854775807s", "too long"},
	{"9223372036854775808ms", "too long"},
	{"99999999999999999999ms", "too long"},
	{"106751d23h47m16s855ms", "too long"},
	{"106752d", "too long"},
	{"30m\x00", "is not a unit"},
	{"5\xffs", "is not a unit"},
	{strings.Repeat("1", 1000) + "s", "1001 bytes"},
}

func TestParseDurationRefuses(t *testing.T) {
	for _, tt := range wrongDurations {
		got, err := levels.ParseDuration(tt.in)
		if !errors.Is(err, levels.ErrDuration) {
			t.Errorf("ParseDuration(%q) = %v, %v; want ErrDuration", tt.in, got, err)
			continue
		}
		if got != 0 {
			t.Errorf("ParseDuration(%q) = %v with an error, want 0", tt.in, got)
		}
		if got, want := err.Error(), tt.hint; !strings.Contains(got, want) {
			t.Errorf("ParseDuration(%q): error %q, want %q in it", tt.in, got, want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	tests := []struct {
		in   time.Duration
		want string
	}{
		{math.MinInt64, "0s"},
		{-time.Second, "0s"},
		{0, "0s"},
		{1, "1ms"},
		{time.Millisecond, "1ms"},
		{time.Millisecond + 1, "2ms"},
		{time.Second - 1, "1s"},
		{1500 * time.Millisecond, "1s500ms"},
		{90 * time.Second, "1m30s"},
		{30 * time.Minute, "30m"},
		{time.Hour - time.Nanosecond, "1h"},
		{36 * time.Hour, "1d12h"},
		{7 * day, "7d"},
		{math.MaxInt64, "106751d23h47m16s855ms"},
	}
	for _, tt := range tests {
		if got, want := levels.FormatDuration(tt.in), tt.want; got != want {
			t.Errorf("FormatDuration(%d) = %q, want %q", tt.in, got, want)
		}
	}
}

// TestFormatDurationRoundsUp: a formatted duration is never shorter than the original, and longer by less than a
// millisecond.
func TestFormatDurationRoundsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		want := time.Duration(rng.Int64() >> rng.IntN(63))
		if want > math.MaxInt64-time.Millisecond {
			continue // rounded up to milliseconds, it would overflow a Duration
		}
		s := levels.FormatDuration(want)
		got, err := levels.ParseDuration(s)
		if err != nil {
			t.Fatalf("FormatDuration(%d) = %q, which does not parse: %v", want, s, err)
		}
		if got < want || got-want >= time.Millisecond {
			t.Fatalf("FormatDuration(%d) = %q, which is %d", want, s, got)
		}
		if whole := want%time.Millisecond == 0; whole && got != want {
			t.Fatalf("FormatDuration(%d) = %q, which is %d", want, s, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, tt := range wrongDurations {
		f.Add(tt.in)
	}
	for _, s := range []string{"0s", "30m", "1h30m", "2d12h", "1500ms", "52w", "1w2d3h4m5s6ms", "106751d23h47m16s854ms"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := levels.ParseDuration(s)
		if err != nil {
			if !errors.Is(err, levels.ErrDuration) || d != 0 {
				t.Fatalf("ParseDuration(%q) = %v, %v; want 0 and ErrDuration", s, d, err)
			}
			return
		}
		if d < 0 || d%time.Millisecond != 0 {
			t.Fatalf("ParseDuration(%q) = %d, want whole milliseconds from 0 up", s, d)
		}
		canonical := levels.FormatDuration(d)
		got, err := levels.ParseDuration(canonical)
		if err != nil || got != d {
			t.Fatalf("ParseDuration(%q) = %v, but its canonical %q = %v, %v", s, d, canonical, got, err)
		}
		// If the standard library can parse the duration, its result is the same.
		if std, err := time.ParseDuration(s); err == nil && std != d {
			t.Fatalf("ParseDuration(%q) = %v, time.ParseDuration = %v", s, d, std)
		}
	})
}
