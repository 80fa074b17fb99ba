package deliver

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseRates(t *testing.T) {
	r, err := ParseRates("shop.mail=50, reports.*=5,>=1000")
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]time.Duration{
		"shop.mail": 20 * time.Millisecond, "reports.daily": 200 * time.Millisecond,
		"reports.a.b": time.Millisecond, "x": time.Millisecond,
	} {
		if _, got := (Limits{ByTarget: r}).Bucket(target, ""); got != want {
			t.Errorf("%s: every %s, want %s", target, got, want)
		}
	}
	for spec, says := range map[string]string{
		"shop": "pattern=", "shop=x": "pattern=", "shop=0": "1 to", "shop=1000001": "1 to", "=": "pattern=",
	} {
		if _, err := ParseRates(spec); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q in it", spec, err, says)
		}
	}
}

// TestBuckets: a message with a key is in the bucket of the first rule of ByKey that matches its target, and of its
// key. All other messages are in the bucket of their target.
func TestBuckets(t *testing.T) {
	limits := Limits{
		ByTarget: Rates{{Pattern: "reports.*", Value: 50}, {Pattern: "mail", Value: 10}},
		ByKey:    Rates{{Pattern: "reports.daily", Value: 1}, {Pattern: "reports.>", Value: 5}},
	}
	for _, tt := range []struct {
		target, key, bucket string
		interval            time.Duration
	}{
		{"reports.a", "", "reports.a", 20 * time.Millisecond},
		{"reports.a", "t7", "reports.> t7", 200 * time.Millisecond},
		{"reports.a.b", "t7", "reports.> t7", 200 * time.Millisecond},
		{"reports.b", "t8", "reports.> t8", 200 * time.Millisecond},
		{"reports.daily", "t7", "reports.daily t7", time.Second},
		{"mail", "t7", "mail", 100 * time.Millisecond},
		{"other", "t7", "other", 0},
	} {
		bucket, interval := limits.Bucket(tt.target, tt.key)
		if bucket != tt.bucket || interval != tt.interval {
			t.Errorf("%s with %q: %q every %s, want %q every %s", tt.target, tt.key, bucket, interval, tt.bucket, tt.interval)
		}
	}
}

// TestKeysAreForgotten: when there are many keys, idle keys are removed, but not a key with a turn in the future.
func TestKeysAreForgotten(t *testing.T) {
	ts := newTargets(Limits{ByKey: Rates{{Pattern: ">", Value: 1}}}, NewCounts(nil))
	busy := ts.turnsOf(ts.target("x"), "busy")
	busy.nextFree = time.Since(ts.start) + time.Hour
	for i := range 3 * minSweep {
		ts.turnsOf(ts.target("x"), strconv.Itoa(i))
	}
	if n := len(ts.byKey); n > minSweep+1 {
		t.Errorf("%d keys are kept, want at most %d", n, minSweep+1)
	}
	if ts.turnsOf(ts.target("x"), "busy") != busy {
		t.Error("a key whose turns are still to come was removed")
	}
}
