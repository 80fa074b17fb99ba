package deliver

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/test/natstest"
)

// slowLookup takes a millisecond for each answer.
type slowLookup struct{ Lookup }

func (l slowLookup) StreamNameBySubject(ctx context.Context, subject string) (string, error) {
	time.Sleep(time.Millisecond)
	return l.Lookup.StreamNameBySubject(ctx, subject)
}

// TestManyCoreTargets delivers to 10,000 subjects that no stream holds, each of which has to be looked up: every one is
// delivered once, and none is taken for a stream that does not answer.
func TestManyCoreTargets(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		const targets = 10_000
		k := newKit(t, s)
		k.streams.lookup = slowLookup{k.streams.lookup}
		seen := k.subscribe("ui.>", nil)
		delivered, others := &count{}, &count{}
		for i := range targets {
			k.Deliver(Message{Target: fmt.Sprintf("ui.%d", i)}, func(r Result) {
				if r.Outcome == Delivered {
					delivered.add()
				} else {
					others.add()
				}
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if seen.get() != targets || delivered.get() != targets || others.get() != 0 {
			t.Errorf("%d seen, %d delivered, %d otherwise; want all seen and delivered", seen.get(), delivered.get(), others.get())
		}
	})
}
