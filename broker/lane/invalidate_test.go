package lane

import (
	"slices"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// TestInvalidate: the owner calls Invalidate while the reader reads, or while the reader waits for its owner. The
// reader starts again at the first message, once, and ignores a call for an older epoch.
func TestInvalidate(t *testing.T) {
	for name, burst := range map[string]int{"reading": 10, "waiting for its owner": 2000} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				r := newRig(t, s)
				r.burst(1, burst)
				o := r.reader(s.Connect(), 0)
				o.take(5)
				o.Invalidate(1)
				time.Sleep(time.Second)
				o.checkEpochs("fresh", "fresh")
				o.Invalidate(1)
				time.Sleep(time.Second)
				o.checkEpochs("fresh", "fresh")
				go o.take(1 << 30)
				time.Sleep(time.Minute)
				if got := o.last(burst); !slices.Equal(got, numbers(1, burst)) {
					t.Errorf("after Invalidate, the reader read %s, want all %d", brief(got), burst)
				}
			})
		})
	}
}

// last returns the bodies of the last messages.
func (o *owner) last(n int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got[max(0, len(o.got)-n):]
}
