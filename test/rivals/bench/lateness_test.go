package bench

import (
	"math"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func TestPercentiles(t *testing.T) {
	l := newLateness()
	for ms := 1000; ms >= 1; ms-- {
		l.Record(time.Duration(ms) * time.Millisecond)
	}
	got := l.Spread()
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"min", got.Min, 1}, {"p50", got.P50, 500}, {"p90", got.P90, 900}, {"p99", got.P99, 990},
		{"p99.9", got.P999, 999}, {"max", got.Max, 1000},
	} {
		if math.Abs(test.got-test.want) > test.want/1000 { // a histogram has three significant digits
			t.Errorf("%s: got %v, want %v", test.name, test.got, test.want)
		}
	}
}

// The minimum and the maximum are exact even outside the range of a histogram. Each percentile is between them.
func TestMinAndMaxAreExact(t *testing.T) {
	l := newLateness()
	if got := l.Spread(); got != nil {
		t.Errorf("empty: got %+v, want nil", got)
	}
	l.Record(-3 * time.Millisecond)
	l.Record(1234567 * time.Microsecond)
	l.Record(72 * time.Hour)
	got := l.Spread()
	if got.Min != -3 || got.Max != 72*3600e3 {
		t.Errorf("got %+v, want the minimum -3 ms and the maximum 72 hours", *got)
	}
	if got.P50 < 1234 || got.P50 > 1236 || got.P99 > got.Max {
		t.Errorf("got %+v, want the median 1234.567 ms, and each percentile at most the maximum", *got)
	}
	isEarly := newLateness()
	isEarly.Record(-2 * time.Millisecond)
	if got, want := *isEarly.Spread(), (Spread{-2, -2, -2, -2, -2, -2}); got != want {
		t.Errorf("one early arrival: got %+v, want %+v", got, want)
	}
}

func TestAddLateness(t *testing.T) {
	sum, part, empty := newLateness(), newLateness(), newLateness()
	for ms := 1; ms <= 100; ms++ {
		part.Record(time.Duration(ms) * time.Millisecond)
	}
	sum.Add(empty)
	sum.Add(part)
	sum.Add(part)
	if got, want := *sum.Spread(), *part.Spread(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := sum.histogram.TotalCount(), int64(200); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

// The library of HdrHistogram decodes the result of Encode.
func TestEncodeHistogram(t *testing.T) {
	l := newLateness()
	for us := range 1000 {
		l.Record(time.Duration(us) * 10 * time.Microsecond)
	}
	text, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equals(l.histogram) {
		t.Errorf("got a different histogram, with %d of %d values", got.TotalCount(), l.histogram.TotalCount())
	}
}
