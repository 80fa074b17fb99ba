package doctor

import "testing"

func TestVulnerable(t *testing.T) {
	for version, want := range map[string]bool{
		"2.9.25": true, "2.11.99": true, "2.12.11": true, "2.14.0": true, "2.14.2": true, "1.4.1": true,
		"2.12.12": false, "2.12.13": false, "2.13.0": false, "2.14.3": false, "2.15.0": false, "2.15.2-RC.1": false,
		"3.0.0": false, "": false, "nightly": false,
	} {
		if got := isVulnerable(version); got != want {
			t.Errorf("%q: got %t, want %t", version, got, want)
		}
	}
}
