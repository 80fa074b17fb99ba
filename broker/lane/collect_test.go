package lane

import (
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// TestCollect: at the tail, a reader hands over what was stored since it last did, once in the time given, and so wakes
// its owner a twentieth as often. In the midst of a lane it collects nothing.
func TestCollect(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		r := newRig(t, s)
		const before, count, collect = 50, 200, 20 * time.Millisecond
		r.burst(1, before)
		began := time.Now()
		nc := s.Connect()
		rd := r.readerOf(ReaderConfig{Conn: nc, JetStream: s.JetStream(nc), Collect: collect})
		for range before {
			rd.Took(<-rd.Items())
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("%d messages in the midst of the lane took %s", before, took)
		}
		go func() {
			for i := range count {
				r.publish(before+i+1, before+i+1)
				time.Sleep(time.Millisecond)
			}
		}()
		wakes := make(map[time.Time]bool)
		for want := uint64(before + 1); want <= before+count; want++ {
			item := <-rd.Items()
			rd.Took(item)
			if wakes[time.Now()] = true; item.Sequence != want || time.Since(item.At) > collect {
				t.Errorf("number %d came after %s, want %d within %s", item.Sequence, time.Since(item.At), want, collect)
			}
		}
		if got, most := len(wakes), count/int(collect/time.Millisecond)+1; got > most {
			t.Errorf("%d messages woke their owner %d times, want %d at most", count, got, most)
		}
	})
}
