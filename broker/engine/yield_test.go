package engine

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/role"
	"delaybroker/test/natstest"
)

// TestYield: the timers' lane yields in a burst of firings, for at most maxYield, and then not again before the next
// burst.
func TestYield(t *testing.T) {
	var y yield
	for _, step := range []struct {
		after   time.Duration
		firings int
		want    bool
	}{
		{0, burstFirings - 1, false},
		{time.Second, burstFirings, true},
		{time.Second + maxYield - 1, 100_000, true},
		{time.Second + maxYield, 100_000, false},
		{time.Hour, burstFirings, false},
		{time.Hour + 1, burstFirings - 1, false},
		{time.Hour + 2, burstFirings, true},
		{time.Hour + 2 + maxYield, burstFirings, false},
	} {
		if got := y.active(step.firings, time.Unix(0, 0).Add(step.after)); got != step.want {
			t.Errorf("after %s with %d firings: yields %t, want %t", step.after, step.firings, got, step.want)
		}
	}
}

// TestTimersLaneReadsAfterABurst: the loop of the timers' lane reads no entry during a burst of firings. It reads
// within yieldPoll after the end of the burst, and at the latest maxYield after the beginning.
func TestTimersLaneReadsAfterABurst(t *testing.T) {
	const entries = 3
	for name, tt := range map[string]struct {
		end  time.Duration // of the burst; zero if no burst begins
		wait time.Duration // from the start of the loop to its end
		want uint64        // number of entries that the loop has read by then
	}{
		"no burst":             {0, 0, entries},
		"in a short burst":     {3*yieldPoll - 1, 3*yieldPoll - 1, 0},
		"after a short burst":  {3*yieldPoll - 1, 3 * yieldPoll, entries},
		"in a long burst":      {time.Minute, maxYield - 1, 0},
		"late in a long burst": {time.Minute, maxYield, entries},
	} {
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			nc := s.Connect()
			js := s.JetStream(nc)
			timers := jetstream.StreamConfig{Name: "DELAY_TIMERS", Subjects: []string{"delaytimer.>"}}
			if _, err := js.CreateStream(context.Background(), timers); err != nil {
				t.Fatal(err)
			}
			for range entries {
				set := &nats.Msg{Subject: "delaytimer.key.orders.x", Header: nats.Header{"Delay-For": {"1h"}}}
				if _, err := js.PublishMsg(context.Background(), set); err != nil {
					t.Fatal(err)
				}
			}
			w := newTestWorker(t, streams.Spec{Kind: streams.Timers, Stream: timers.Name}, time.Now())
			w.reading.Reader = lane.NewReader(lane.ReaderConfig{
				Conn: nc, JetStream: js, APIPrefix: "$JS.API", Inbox: "_INBOX", Stream: timers.Name, From: 1,
				Log: slog.New(slog.DiscardHandler),
			})
			var firings []*role.Alarm
			other := w.engine.Timers.Lane()
			for n := range burstFirings {
				if tt.end > 0 {
					a := other.MarkerAlarm(entry.Marker{Request: message.Request{Target: "x", ID: fmt.Sprintf(
						"DELAY_TIMERS-%d-1732060800000000000", entries+1+n)}, Key: "key"})
					a.Claim(message.Request{}, nil, leader.Time{})
					firings = append(firings, a)
				}
			}
			time.AfterFunc(tt.end, func() {
				for _, a := range firings {
					a.End()
				}
			})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.run(ctx) }()
			time.Sleep(tt.wait)
			synctest.Wait()
			stop()
			if err := <-ended; err != nil {
				t.Errorf("%s: the loop ended with %v", name, err)
			}
			if got := w.reading.last.Sequence; got != tt.want {
				t.Errorf("%s: after %s the lane has read %d entries, want %d", name, tt.wait, got, tt.want)
			}
		})
	}
}
