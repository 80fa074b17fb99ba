package deliver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestSilenceAfterStall: the connection stalls once for some seconds. A message to core subscribers that is sent after
// the stall counts as delivered, as soon as any other message. A message that was sent into the stall counts as
// delivered if the server confirmed before its timeout that it took the message.
func TestSilenceAfterStall(t *testing.T) {
	for _, tt := range []struct {
		stall time.Duration
		want  Outcome // of the message that was sent into the stall
	}{{500 * time.Millisecond, Delivered}, {4 * time.Second, Delivered}, {4900 * time.Millisecond, Delivered},
		{6 * time.Second, Unknown}} {
		natstest.Subtest(t, tt.stall.String(), func(t *testing.T, s *natstest.Server) {
			d := s.Staller()
			k := newKit(t, s, nats.SetCustomDialer(d))
			k.subscribe("ui.>", nil)
			k.send("ui.warm", message.ModeCore)
			time.Sleep(time.Second)
			var stalled *watched
			time.AfterFunc(time.Millisecond, func() { stalled = k.send("ui.stalled", message.ModeCore) })
			d.Stall(tt.stall)
			time.Sleep(100 * time.Millisecond)
			var after []*watched
			for range 100 {
				after = append(after, k.send("ui.x", message.ModeCore))
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if r := stalled.results; len(r) != 1 || r[0].Outcome != tt.want {
				t.Errorf("into the stall: results %v, want %s", r, tt.want)
			}
			for n, w := range after {
				if len(w.results) != 1 || w.results[0].Outcome != Delivered || w.elapsed != silence {
					t.Errorf("message %d after the stall: %v after %s, want delivered after %s", n, w.results, w.elapsed, silence)
				}
			}
		})
	}
}
