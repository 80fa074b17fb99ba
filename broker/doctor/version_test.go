package doctor

import (
	"strings"
	"testing"
)

func TestServerWeakness(t *testing.T) {
	const vulnerable, answers, none = "known vulnerabilities", "below $JS", ""
	for version, want := range map[string]string{
		"1.4.1": vulnerable, "2.9.25": vulnerable, "2.11.99": vulnerable, "2.12.11": vulnerable, "2.14.0": vulnerable,
		"2.14.2":  vulnerable,
		"2.12.12": answers, "2.12.15": answers, "2.13.0": answers, "2.14.3": answers, "2.14.9": answers,
		"2.15.0": answers, "2.15.2": answers, "2.15.3-RC.1": answers,
		"2.14.10": none, "2.15.3": none, "2.16.0-RC.1": none, "3.0.0": none, "": none, "nightly": none,
	} {
		got := serverWeakness(version)
		if got != "" != (want != none) || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
		if secure := isSecure(version); secure == (want == vulnerable || version == "" || version == "nightly") {
			t.Errorf("isSecure(%q) is %t", version, secure)
		}
	}
}
