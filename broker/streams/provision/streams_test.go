package provision

import (
	"errors"
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/levels"
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

// A message leaves its lane at the lane's end, unless so little is left then that it waits for its due time there.
func TestLeaves(t *testing.T) {
	ladder, err := levels.Parse("1s 5s 10s")
	if err != nil {
		t.Fatal(err)
	}
	s, err := StreamsOf(config.Config{Ladder: ladder})
	if err != nil {
		t.Fatal(err)
	}
	stored := time.Now()
	after := func(d time.Duration) time.Time { return stored.Add(d) }
	for _, test := range []struct {
		name         string
		delay        time.Duration
		due, retryAt time.Time
		want         time.Time
	}{
		{"due at the end of the level", 5 * time.Second, after(5 * time.Second), time.Time{}, after(5 * time.Second)},
		{"due soon after", 5 * time.Second, after(8 * time.Second), time.Time{}, after(8 * time.Second)},
		{"hops", 5 * time.Second, after(8*time.Second + 1), time.Time{}, after(5 * time.Second)},
		{"hops out of the intake", 0, after(time.Hour), time.Time{}, after(0)},
		{"held in the intake", 0, after(time.Second), time.Time{}, after(time.Second)},
		{"was due long ago", 0, after(-time.Hour), time.Time{}, after(-time.Hour)},
		{"a retry", time.Second, after(-time.Hour), after(time.Second), after(time.Second)},
	} {
		got := s.Leaves(streams.Spec{Delay: test.delay}, stored, message.Request{Due: test.due, RetryAt: test.retryAt})
		if !got.Equal(test.want) {
			t.Errorf("%s: leaves %s after it was stored, want %s", test.name, got.Sub(stored), test.want.Sub(stored))
		}
	}
}
