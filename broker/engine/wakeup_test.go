package engine

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/deliver"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/link"
	"delaybroker/broker/streams"
	"delaybroker/test/natstest"
)

// passCounter is a plain lane that counts the passes of its loop.
type passCounter struct {
	plainLane
	passes *int
}

func (c passCounter) poll(w *worker, m moment) time.Duration {
	*c.passes++
	return c.plainLane.poll(w, m)
}

// slowTarget is a deliverer whose target acknowledges each message after a delay.
type slowTarget time.Duration

func (d slowTarget) Deliver(_ deliver.Message, done func(deliver.Result)) {
	time.AfterFunc(time.Duration(d), func() { done(deliver.Result{Time: time.Now()}) })
}

func (slowTarget) Recall(deliver.Owner) {}

// TestAcknowledgementsWakeNoLoop: a message costs one pass when it is read, and one when it is due. Its acknowledgement
// comes between two due times, and costs none. After the last acknowledgement, the loop wakes within answerWindow.
func TestAcknowledgementsWakeNoLoop(t *testing.T) {
	const messages, delay = 500, time.Second
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		js := s.JetStream(nc)
		if _, err := js.CreateStream(context.Background(), jetstream.StreamConfig{
			Name: "DELAY_1s", Subjects: []string{"delay.1s.>"},
		}); err != nil {
			t.Fatal(err)
		}
		w := newTestWorker(t, streams.Spec{Kind: streams.Level, Stream: "DELAY_1s", Name: "1s", Delay: delay}, time.Now())
		w.engine.Links = link.NewStates(link.Links{Read: nc, Write: nc, Deliver: nc, Control: nc})
		w.engine.Links.Refresh()
		w.engine.JetStream = link.NewJetStream(js, jsapi.Client{Conn: nc, API: "$JS.API"})
		w.commits = newCommitter("DELAY_1s", plainLane{}, w.engine.JetStream.API, w.engine.JetStream.Sample)
		w.engine.Deliver = slowTarget(1500 * time.Microsecond)
		passes := 0
		w.plan.kind = passCounter{passes: &passes}
		w.reading.Reader = lane.NewReader(lane.ReaderConfig{
			Conn: nc, JetStream: js, APIPrefix: "$JS.API", Inbox: "_INBOX", Stream: "DELAY_1s", From: 1,
			Log: slog.New(slog.DiscardHandler),
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		before := passes
		for range messages {
			if err := nc.PublishMsg(nats.NewMsg("delay.1s.orders.x")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(delay + time.Millisecond + answerWindow)
		synctest.Wait()
		if got, limit := passes-before, 2*messages+messages/10; got > limit {
			t.Errorf("%d messages cost %d passes of the loop, want at most %d", messages, got, limit)
		}
		if w.flights.count > 0 {
			t.Errorf("%d messages are in memory after their acknowledgements", w.flights.count)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
