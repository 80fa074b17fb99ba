package pauses

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/pause"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests pauses while their stream is full, silent, deleted or purged.

// limit sets the maximum number of messages in the stream of paused messages.
func limit(c *harness.Client, maxMsgs int64) {
	c.T.Helper()
	c.Reconfigure(harness.PausedStream, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = maxMsgs })
}

// silence leaves publishes into the stream of paused messages unanswered, as in a stream without a leader, until the
// returned function is called.
func silence(c *harness.Client) (end func()) {
	c.T.Helper()
	cfg := c.Remove(harness.PausedStream)
	sub, err := c.NC.Subscribe("delaysys.paused.>", func(*nats.Msg) {})
	natstest.NoError(c.T, err)
	return func() {
		natstest.NoError(c.T, sub.Unsubscribe())
		c.Create(cfg)
	}
}

// TestPausedStreamTroubles: the stream of paused messages is full, silent or deleted while 250 messages a second become
// due for a paused target. The broker delivers no message to the paused target and loses none. Another target gets its
// messages on time, and no lane keeps all paused messages in memory.
func TestPausedStreamTroubles(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, begin := range map[string]func(c *harness.Client) (end func()){
		"full":   func(c *harness.Client) func() { limit(c, 1); return func() { limit(c, -1) } },
		"silent": silence,
		"deleted": func(c *harness.Client) func() { // the broker creates the stream again
			c.Remove(harness.PausedStream)
			return func() {}
		},
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			harness.StartBroker(t, s, broker.Config{}).Stop() // this broker creates the streams
			b := harness.LaunchVerifying(t, s, broker.Config{Log: harness.NoLog, Provision: name == "deleted"})
			<-b.Broker.Ready()
			c, o := harness.NewClient(t, s), harness.Operator(t, s)
			c.Target("ORDERS", "orders.>")
			c.Target("MAIL", "mail.>")
			harness.MustPause(t, o, "orders.>")
			end := begin(c)
			count := 0
			send := func(n int) {
				for range n {
					publishNumber(c, count, "delay.1s.orders.x", "delay.1s.mail.x")
					count++
					time.Sleep(4 * time.Millisecond)
				}
			}
			send(1500)
			for _, l := range b.Broker.Status().Lanes {
				if l.Held > 1300 {
					t.Errorf("%s holds %d messages in memory, want at most 1300", l.Stream, l.Held)
				}
			}
			time.Sleep(time.Minute)
			end()
			time.Sleep(time.Minute)
			harness.CheckInOrder(t, c.Arrivals("ORDERS"), 0)
			harness.CheckOnTime(t, c.Arrivals("MAIL"), count)
			harness.MustResume(t, o, "orders.>")
			time.Sleep(2 * time.Minute)
			if got := c.Arrivals("ORDERS"); len(got) != count {
				t.Errorf("%d messages arrived after the resumption, want %d", len(got), count)
			}
			c.CheckEmpty()
		})
	}
}

// TestPausedStreamPurged: after a purge of the stream of paused messages, an instance writes the pause again, so that
// the pause also lasts after a restart.
func TestPausedStreamPurged(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := harness.StartBroker(t, s, broker.Config{})
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Target("ORDERS", "orders.>")
		harness.MustPause(t, o, "orders.>")
		c.Purge(harness.PausedStream)
		time.Sleep(time.Minute)
		a.Crash()
		harness.StartBroker(t, s, broker.Config{})
		c.Publish("delay.1s.orders.x", "kept")
		time.Sleep(10 * time.Minute)
		harness.CheckInOrder(t, c.Arrivals("ORDERS"), 0)
		harness.MustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		harness.CheckBodies(t, c.Arrivals("ORDERS"), "kept")
	})
}

// TestResumedInFullAccount: paused messages may fill the account. A resumption takes effect even if the stream cannot
// store it, and the broker sends the messages, here to core subscribers. A pause that the stream cannot store is
// refused.
func TestResumedInFullAccount(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, o := start(t, s, broker.Config{Log: harness.NoLog})
		in := c.Subscribe("ui.>")
		harness.MustPause(t, o, "ui.>")
		c.PublishMany("delay.1s.ui.x", 100)
		time.Sleep(time.Minute)
		account := harness.StorageLimit(c, s)
		account.Reach()
		_, err := o.Pause(context.Background(), "mail.>", pause.Hours{})
		if err == nil || !strings.Contains(err.Error(), "did not store") {
			t.Errorf("pause: %v, want an error that the stream cannot store the pause", err)
		}
		change, err := o.Resume(context.Background(), "ui.>")
		if err != nil || change.NotStored == "" || len(change.Confirmed) != 1 {
			t.Errorf("resume: %+v, %v, want a confirmation, and the reason why the resumption is not stored", change, err)
		}
		time.Sleep(time.Minute)
		harness.CheckCount(t, in.Arrivals(), 100)
		account.Lift()
		time.Sleep(10 * time.Minute)
		if left, err := o.Pauses(context.Background()); err != nil || len(left) > 0 {
			t.Errorf("the stored pauses are %v, %v, want none", left, err)
		}
	})
}

// TestResumeWithoutBroker: without a running broker, a resumption fails if the stream cannot store it, because no
// instance could apply it later. The pattern stays paused until a resumption is stored.
func TestResumeWithoutBroker(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		b := harness.StartBroker(t, s, broker.Config{})
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		harness.MustPause(t, o, "ui.>")
		b.Stop()
		account := harness.StorageLimit(c, s)
		account.Reach()
		_, err := o.Resume(context.Background(), "ui.>")
		if err == nil || !strings.Contains(err.Error(), "did not store") {
			t.Errorf("resume: %v, want an error that the stream cannot store the resumption", err)
		}
		account.Lift()
		if left, err := o.Pauses(context.Background()); err != nil || len(left) != 1 {
			t.Errorf("the stored pauses are %v, %v, want one", left, err)
		}
		harness.MustResume(t, o, "ui.>")
	})
}

// TestPauseWithoutItsStream: the stream of paused messages is missing, and the broker does not create it. The broker
// delivers as usual, and a pause fails.
func TestPauseWithoutItsStream(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{}).Stop()
		c, o := harness.NewClient(t, s), harness.Operator(t, s)
		c.Remove(harness.PausedStream)
		b := harness.LaunchVerifying(t, s, broker.Config{})
		<-b.Broker.Ready()
		c.Target("ORDERS", "orders.>")
		if _, err := o.Pause(context.Background(), "orders.>", pause.Hours{}); !errors.Is(err, inspect.ErrNoPauses) {
			t.Errorf("pause: %v, want an error that no stream exists", err)
		}
		c.Publish("delay.1s.orders.x", "000000")
		time.Sleep(time.Minute)
		harness.CheckOnTime(t, c.Arrivals("ORDERS"), 1)
	})
}

// TestPauseBesideSilentInstance: a pause waits for an active instance that does not answer, until another one is
// active.
func TestPauseBesideSilentInstance(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s"), Leaser: harness.Together, Log: harness.NoLog}
		active := harness.StartBroker(t, s, cfg)
		time.Sleep(12 * time.Second)
		_, o := start(t, s, cfg)
		active.Links.Control.Close()
		began := time.Now()
		change, err := o.Pause(context.Background(), "orders.>", pause.Hours{})
		if took := time.Since(began); err != nil || len(change.Confirmed) != 1 || took < time.Second {
			t.Errorf("pause beside a silent active instance: %+v, %v after %s; want one confirmation after the take-over",
				change, err, took)
		}
		active.Crash()
	})
}

// TestLatePauseIsFound: an instance that has not learned of the end of a pause stores a message in the lane of the
// pause. The owner finds and delivers the message, even when the list does not have this pause any more. The message is
// a copy of a delivered one, so the target stores it again only after its duplicate window.
func TestLatePauseIsFound(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{time.Second: "late", 3 * time.Hour: "late×2"} {
		natstest.Subtest(t, after.String(), func(t *testing.T, s *natstest.Server) {
			c, o := start(t, s, broker.Config{})
			c.Target("ORDERS", "orders.>")
			if after == time.Second { // the owner must also look while another target is paused
				harness.MustPause(t, o, "mail.>")
			}
			harness.MustPause(t, o, "orders.>")
			list, err := o.Pauses(context.Background())
			natstest.NoError(t, err)
			c.Publish("delay.1s.orders.x", "late")
			time.Sleep(time.Minute)
			parked, err := c.Stream(harness.PausedStream).GetLastMsgForSubject(context.Background(),
				"delaysys.paused."+list[len(list)-1].ID+".orders.x")
			natstest.NoError(t, err)
			harness.MustResume(t, o, "orders.>")
			time.Sleep(5*time.Second + after)
			if after > time.Hour { // the next list no longer contains the pause of orders.>
				harness.MustPause(t, o, "mail.>")
				harness.MustResume(t, o, "mail.>")
			}
			parked.Header.Del("Nats-Msg-Id")
			c.Store(&nats.Msg{Subject: parked.Subject, Header: parked.Header, Data: parked.Data})
			time.Sleep(2 * time.Hour)
			harness.CheckBodies(t, c.Arrivals("ORDERS"), want)
			c.CheckEmpty()
		})
	}
}
