package config

import (
	"fmt"
	"strings"
	"testing"

	"delaybroker/levels"
)

// TestParseLimits parses a default, and rules with and without a default.
func TestParseLimits(t *testing.T) {
	for text, want := range map[string]string{
		"20":                       "[] 20",
		"shop.mail=5,20":           "[{shop.mail 5}] 20",
		"shop.mail=5 shop.>=7, 20": "[{shop.mail 5} {shop.> 7}] 20",
		"shop.mail=5":              "[{shop.mail 5}] ",
		"many":                     "[] many", // the caller parses the default
		"shop.mail=0":              "[{shop.mail 0}] ",
		"shop.mail=x":              `attempts "shop.mail=x": want pattern=number, such as shop.mail=5,20`,
		"shop.mail=":               `attempts "shop.mail=": want pattern=number, such as shop.mail=5,20`,
		"5,20":                     "two defaults, 5 and 20: keep one",
		"shop.mail=99999999999999999999": `attempts "shop.mail=99999999999999999999": ` +
			`want pattern=number, such as shop.mail=5,20`,
	} {
		rules, fallback, err := ParseRetryLimits(text)
		got := fmt.Sprint(rules, " ", fallback)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// format writes waits in the notation of ParseRetryWaits.
func format(rules RetryWaits, fallback levels.Ladder, jitter RetryJitter) string {
	var words []string
	percent := func(at int) string {
		if jitter == nil || jitter[at].Value == 0 {
			return ""
		}
		return fmt.Sprintf(" ~%d%%", jitter[at].Value)
	}
	for at, r := range rules {
		words = append(words, r.Pattern+"="+r.Value.String()+percent(at))
	}
	return strings.Join(append(words, fallback.String()+percent(len(rules))), "; ")
}

// TestParseWaits parses a default, and rules with and without a default, and expands doublings.
func TestParseWaits(t *testing.T) {
	for text, want := range map[string]string{
		"1s 5s 30s":                     "1s 5s 30s",
		"1s,5s,30s":                     "1s 5s 30s",
		"shop.mail=1s,1m,10m;1s,5s,30s": "shop.mail=1s 1m 10m; 1s 5s 30s",
		" a=1s ; b.>=2s 3s;\t5s ":       "a=1s; b.>=2s 3s; 5s",
		"shop.mail=1s":                  "shop.mail=1s; ",
		"1s x2 10s":                     "1s 2s 4s 8s 10s",
		"1s,x2,8s,30s":                  "1s 2s 4s 8s 30s",
		"30s x2 10m x2 1h":              "30s 1m 2m 4m 8m 10m 20m 40m 1h",
		"1500ms x2 6s":                  "1500ms 3s 6s",
		"16s x2 2m":                     "16s 32s 64s 2m",
		"12h x2 4d":                     "12h 1d 2d 4d",
		"1m x2 1m":                      "1m x2 1m: want a wait of at least 1s, then a longer one of at most 366d",
		"1m x2 106751d":                 "1m x2 106751d: want a wait of at least 1s, then a longer one of at most 366d",
		"0s x2 1m":                      "0s x2 1m: want a wait of at least 1s, then a longer one of at most 366d",
		"1s x2":                         "x2: want it between two waits, as in 1s x2 10m",
		"x2 1s":                         "x2: want it between two waits, as in 1s x2 10m",
		"1s x2 x2 1m":                   "1s x2 x2: want a wait of at least 1s, then a longer one of at most 366d",
		"1s;5s":                         "2 defaults: keep one, and write the others as pattern=waits",
		"a=;5s":                         "no level: write names",
		"a=1s,1s":                       `levels "1s" and "1s" are equally long: keep one`,
		"5s,1s":                         "1s after 5s: want the waits from the shortest to the longest",
		"a=1s30ms":                      `write one number and unit`,
		"1s x2 4s ~20%":                 "1s 2s 4s ~20%",
		"a=1s,5s ~100%;30s":             "a=1s 5s ~100%; 30s",
		"a=1s;30s~1%":                   "a=1s; 30s ~1%",
		"1s ~0%":                        "~0%: want a percentage from ~1% to ~100% after the waits, such as 1s x2 1m ~20%",
		"1s ~101%":                      "~101%: want a percentage",
		"1s ~20":                        "~20: want a percentage",
		"~20% 1s":                       "~20% 1s: want a percentage",
		"1s ~20% ~30%":                  "~20% ~30%: want a percentage",
		"~20%":                          "no level: write names",
	} {
		rules, fallback, jitter, err := ParseRetryWaits(text)
		got := format(rules, fallback, jitter)
		if err != nil {
			if got = err.Error(); !strings.Contains(got, want) {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
			continue
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestFirstRuleApplies: the first matching rule applies. A target without a matching rule has the default.
func TestFirstRuleApplies(t *testing.T) {
	limits, _, err := ParseRetryLimits("shop.mail=5,shop.*=7")
	if err != nil {
		t.Fatal(err)
	}
	waits, fallback, jitter, err := ParseRetryWaits("shop.mail=1s;shop.*=2s ~10%;3s ~20%")
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"shop.mail":    "5 1s 0%",
		"shop.sms":     "7 2s 10%",
		"shop":         "20 3s 20%",
		"shop.mail.eu": "20 3s 20%",
	} {
		got := fmt.Sprintf("%d %s %d%%", limits.Lookup(target, 20), waits.Lookup(target, fallback), jitter.Lookup(target, 0))
		if got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}

// TestLanes: RetryLanes returns the levels of all waits, each once. It refuses two names of one duration, because each
// name would have its own stream.
func TestLanes(t *testing.T) {
	for text, want := range map[string]string{
		"a=1s,1m,10m;b=1m;1s,5s,30s": "1s 5s 30s 1m 10m",
		"a=60s;1m":                   "equally long: keep one",
	} {
		waits, fallback, _, err := ParseRetryWaits(text)
		if err != nil {
			t.Fatal(err)
		}
		lanes, err := RetryLanes(waits, fallback)
		got := lanes.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
