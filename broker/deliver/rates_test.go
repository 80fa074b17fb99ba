package deliver

import (
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
		if got := r.interval(target); got != want {
			t.Errorf("%s: every %s, want %s", target, got, want)
		}
	}
	if got := (Rates{{Pattern: "a.>", Value: 1}}).interval("b"); got != 0 {
		t.Errorf("no rule: every %s, want 0", got)
	}
	for spec, says := range map[string]string{
		"shop": "pattern=", "shop=x": "pattern=", "shop=0": "1 to", "shop=1000001": "1 to", "=": "pattern=",
	} {
		if _, err := ParseRates(spec); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q in it", spec, err, says)
		}
	}
}
