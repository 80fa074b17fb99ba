package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range and the precision of a histogram. Its values are in microseconds.
const (
	maxLateness = 24 * time.Hour // a longer duration counts as this
	digits      = 3              // significant digits of a value
)

// Lateness is a distribution of durations. It uses constant memory.
type Lateness struct {
	histogram *hdrhistogram.Histogram
	min, max  time.Duration // exact; the minimum may be negative, unlike a value of the histogram
}

func newLateness() *Lateness {
	return &Lateness{histogram: hdrhistogram.New(1, maxLateness.Microseconds(), digits)}
}

// Record adds a duration. In the histogram, a negative duration has the value zero.
func (l *Lateness) Record(d time.Duration) {
	if l.histogram.TotalCount() == 0 {
		l.min, l.max = d, d
	}
	l.min, l.max = min(l.min, d), max(l.max, d)
	_ = l.histogram.RecordValue(min(max(d, 0), maxLateness).Microseconds()) // fails only for a value out of range
}

// Add adds all durations of another Lateness.
func (l *Lateness) Add(other *Lateness) {
	if other.histogram.TotalCount() == 0 {
		return
	}
	if l.histogram.TotalCount() == 0 {
		l.min, l.max = other.min, other.max
	}
	l.min, l.max = min(l.min, other.min), max(l.max, other.max)
	l.histogram.Merge(other.histogram)
}

// A Spread has the percentiles of a distribution, in milliseconds.
type Spread struct {
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Spread returns the percentiles, or nil if nothing was recorded. The minimum and the maximum are exact to the
// microsecond, and each percentile is between them.
func (l *Lateness) Spread() *Spread {
	if l.histogram.TotalCount() == 0 {
		return nil
	}
	percentile := func(percent float64) float64 {
		d := time.Duration(l.histogram.ValueAtPercentile(percent)) * time.Microsecond
		return milliseconds(max(min(d, l.max), l.min))
	}
	return &Spread{
		Min: milliseconds(l.min), P50: percentile(50), P90: percentile(90), P99: percentile(99),
		P999: percentile(99.9), Max: milliseconds(l.max),
	}
}

// Encode returns the histogram in the compressed V2 format of HdrHistogram. The values are in microseconds.
func (l *Lateness) Encode() (string, error) {
	encoded, err := l.histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return string(encoded), err
}

// milliseconds returns a duration in milliseconds, with microsecond precision.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
