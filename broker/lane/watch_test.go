package lane

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// pauseConsumers pauses the consumers of the stream, as nats consumer pause does.
func (r *rig) pauseConsumers(d time.Duration) {
	r.t.Helper()
	for _, name := range r.consumers() {
		body, err := json.Marshal(map[string]time.Time{"pause_until": time.Now().Add(d)})
		natstest.NoError(r.t, err)
		_, err = r.nc.RequestWithContext(context.Background(), "$JS.API.CONSUMER.PAUSE."+r.spec.Stream+"."+name, body)
		natstest.NoError(r.t, err)
	}
}

// TestPausedConsumer: an operator pauses the consumer of an idle lane for an hour. The reader notices within seconds
// that the consumer lacks a message, reads it with another consumer, and names the cause meanwhile.
func TestPausedConsumer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		r.spec.Delay = 0
		o := r.read(s.Connect(), 0)
		r.burst(1, 3)
		o.check(1, 3)
		time.Sleep(time.Minute)
		r.pauseConsumers(time.Hour)
		r.burst(4, 6)
		start := time.Now()
		for o.Trouble() == nil && time.Since(start) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if got := o.Trouble(); !errors.Is(got, ErrPaused) {
			t.Errorf("the trouble is %v, want the pause", got)
		}
		for len(o.bodies()) < 6 && time.Since(start) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		o.check(1, 6)
		if got := time.Since(start); got > minWatch+lagTimeout+time.Second {
			t.Errorf("read after %s", got)
		}
		if got := o.Trouble(); got != nil {
			t.Errorf("the trouble is %v after the messages, want none", got)
		}
	})
}

func (o *owner) bodies() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got
}
