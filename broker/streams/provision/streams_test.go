package provision

import (
	"errors"
	"testing"

	"delaybroker/broker/config"
)

func TestStreamsOf(t *testing.T) {
	if _, err := StreamsOf(config.Config{Replicas: 9}); !errors.Is(err, config.ErrConfig) {
		t.Errorf("got %v, want ErrConfig", err)
	}
	for _, test := range []struct {
		replicas  int
		clustered bool
		want      int
	}{
		{0, false, 1}, {0, true, 3}, {1, true, 1}, {5, false, 5},
	} {
		s, err := StreamsOf(config.Config{Replicas: test.replicas})
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range s.Wanted(1<<20, test.clustered) {
			if got := spec.Replicas; got != test.want {
				t.Errorf("%+v: got %d replicas of %s, want %d", test, got, spec.Stream, test.want)
			}
		}
	}
}
