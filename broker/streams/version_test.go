package streams

import (
	"errors"
	"testing"
)

func TestCheckServer(t *testing.T) {
	for version, old := range map[string]bool{
		"1.4.1": true, "2.9.10": true, "2.10.0": false, "2.15.2": false, "3.0.0": false, "2.9.25-beta.1": true, "": false,
	} {
		if err := CheckServer(version); errors.Is(err, ErrServerTooOld) != old {
			t.Errorf("%q: got %v, want too old: %t", version, err, old)
		}
	}
}
