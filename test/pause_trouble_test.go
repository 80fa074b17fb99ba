package test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// This file is about pauses when their stream cannot be used.

const pausedStream = "DELAY_PAUSED"

// limit sets how many messages the stream of what is paused may hold.
func (c *client) limit(most int64) {
	c.t.Helper()
	c.reconfigure(pausedStream, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = most })
}

// silence has publishes into the stream of what is paused go unanswered, as those into one without a leader, until the
// returned function is called.
func (c *client) silence() (end func()) {
	c.t.Helper()
	cfg := c.remove(pausedStream)
	sub, err := c.nc.Subscribe("delaysys.paused.>", func(*nats.Msg) {})
	if err != nil {
		c.t.Fatal(err)
	}
	return func() {
		if err := sub.Unsubscribe(); err != nil {
			c.t.Fatal(err)
		}
		c.create(cfg)
	}
}

// TestPausedStreamTroubles: the stream of what is paused takes nothing while 250 messages a second become due for a
// paused target: it is full, it does not answer, or it is gone. None is delivered and none lost, other targets get
// everything when it is due, and no lane keeps the messages in memory.
func TestPausedStreamTroubles(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(c *client) (end func()){
		"full":    func(c *client) func() { c.limit(1); return func() { c.limit(-1) } },
		"silent":  (*client).silence,
		"deleted": func(c *client) func() { c.remove(pausedStream); return func() {} }, // the broker makes it again
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				startBroker(t, s, broker.Config{}).stop() // makes the streams
				b := launchVerifying(t, s, broker.Config{Log: quiet, Provision: name == "deleted"})
				<-b.broker.Ready()
				c, o := newClient(t, s), operator(t, s)
				c.target("ORDERS", "orders.>")
				c.target("MAIL", "mail.>")
				mustPause(t, o, "orders.>")
				end := begin(c)
				count := 0
				send := func(n int) {
					for range n {
						for _, target := range []string{"orders", "mail"} {
							if err := c.nc.Publish("delay.1s."+target+".x", fmt.Appendf(nil, "%06d", count)); err != nil {
								t.Fatal(err)
							}
						}
						count++
						time.Sleep(4 * time.Millisecond)
					}
				}
				send(1500)
				for _, l := range b.broker.Status().Lanes {
					if l.Held > 1300 {
						t.Errorf("%s holds %d messages", l.Stream, l.Held)
					}
				}
				time.Sleep(time.Minute)
				end()
				time.Sleep(time.Minute)
				checkInOrder(t, c.arrivals("ORDERS"), 0)
				checkPunctual(t, c.arrivals("MAIL"), count)
				mustResume(t, o, "orders.>")
				time.Sleep(2 * time.Minute)
				if got := c.arrivals("ORDERS"); len(got) != count {
					t.Errorf("%d arrived, want %d", len(got), count)
				}
				c.checkNoDead()
				c.checkEmpty()
			})
		})
	}
}

// TestPausedStreamPurged: somebody purges the stream. What waited is gone with it; the pause is not, and is written
// back, so that it holds after a restart too.
func TestPausedStreamPurged(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		a := startBroker(t, s, broker.Config{})
		c, o := newClient(t, s), operator(t, s)
		c.target("ORDERS", "orders.>")
		mustPause(t, o, "orders.>")
		c.purge(pausedStream)
		time.Sleep(time.Minute)
		a.crash()
		startBroker(t, s, broker.Config{})
		c.publish("delay.1s.orders.x", "kept")
		time.Sleep(time.Hour)
		checkInOrder(t, c.arrivals("ORDERS"), 0)
		mustResume(t, o, "orders.>")
		time.Sleep(time.Minute)
		if got := bodies(c.arrivals("ORDERS")); got != "kept" {
			t.Errorf("%q arrived, want kept", got)
		}
	})
}

// TestResumedInFullAccount: what is paused may be what fills the account. A resumption counts also where it cannot be
// stored, and what waited goes out, to core subscribers here. A pause that cannot be stored is refused.
func TestResumedInFullAccount(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Log: quiet})
		c, o := newClient(t, s), operator(t, s)
		in := c.subscribe("ui.>")
		mustPause(t, o, "ui.>")
		c.many("delay.1s.ui.x", 100)
		time.Sleep(time.Minute)
		account := accountStorage(c, s)
		account.fill()
		if _, err := o.Pause(context.Background(), "mail.>"); err == nil || !strings.Contains(err.Error(), "did not store") {
			t.Errorf("pause: %v, want that nothing can be stored", err)
		}
		change, err := o.Resume(context.Background(), "ui.>")
		if err != nil || change.Stored == "" || len(change.Told) != 1 {
			t.Errorf("resume: %+v, %v, want it told, and why it is not stored", change, err)
		}
		time.Sleep(time.Minute)
		if got := len(in.all()); got != 100 {
			t.Errorf("%d arrived, want 100", got)
		}
		account.lift()
		time.Sleep(10 * time.Minute)
		if left, err := o.Pauses(context.Background()); err != nil || len(left) > 0 {
			t.Errorf("stored as paused: %v, %v, want nothing", left, err)
		}
	})
}

// TestPauseWithoutItsStream: a broker that may not create the stream delivers as ever; pause says what is missing.
func TestPauseWithoutItsStream(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{}).stop()
		c, o := newClient(t, s), operator(t, s)
		c.remove(pausedStream)
		b := launchVerifying(t, s, broker.Config{})
		<-b.broker.Ready()
		c.target("ORDERS", "orders.>")
		if _, err := o.Pause(context.Background(), "orders.>"); !errors.Is(err, inspect.ErrNoPauses) {
			t.Errorf("pause: %v, want that there is no stream for it", err)
		}
		c.publish("delay.1s.orders.x", "000000")
		time.Sleep(time.Minute)
		checkPunctual(t, c.arrivals("ORDERS"), 1)
	})
}

// TestPauseRefusedByOlderBroker: an instance that knows nothing of pauses would deliver all the same, so nothing is
// paused while it runs. One that the table names and that does not answer is named.
func TestPauseRefusedByOlderBroker(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: ladder(t, "1s"), MaxOwners: 3}
		startBroker(t, s, cfg)
		c, o := newClient(t, s), operator(t, s)
		older, err := c.nc.Subscribe("delayctl.status", func(m *nats.Msg) {
			_ = c.nc.Publish(m.Reply, []byte(`{"instance":"older","lanes":[]}`))
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Pause(context.Background(), "orders.>"); !errors.Is(err, inspect.ErrOlder) ||
			!strings.Contains(err.Error(), "older") {
			t.Errorf("pause beside an older broker: %v, want its name", err)
		}
		if all, err := o.Pauses(context.Background()); err != nil || len(all) > 0 {
			t.Errorf("paused all the same: %v, %v", all, err)
		}
		if err := older.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		deaf := startBroker(t, s, cfg)
		time.Sleep(12 * time.Second)
		deaf.links.Control.Close()
		change, err := o.Pause(context.Background(), "orders.>")
		if (err == nil || !errors.Is(err, inspect.ErrNotTold)) && len(change.Told) != 1 {
			t.Errorf("pause beside one that is cut off: %+v, %v", change, err)
		}
		deaf.crash()
	})
}

// TestLatePauseIsFound: an instance that does not know yet that a pause is over has put a message into its lane. It is
// found, and delivered, also when the list has forgotten the pause.
func TestLatePauseIsFound(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{time.Second: "late", 3 * time.Hour: "late×2"} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				startBroker(t, s, broker.Config{})
				c, o := newClient(t, s), operator(t, s)
				c.target("ORDERS", "orders.>")
				if after == time.Second { // then it is not enough to look while nothing is paused
					mustPause(t, o, "mail.>")
				}
				mustPause(t, o, "orders.>")
				list, err := o.Pauses(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				c.publish("delay.1s.orders.x", "late")
				time.Sleep(time.Minute)
				parked, err := c.stream(pausedStream).GetLastMsgForSubject(context.Background(),
					"delaysys.paused."+list[len(list)-1].ID+".orders.x")
				if err != nil {
					t.Fatal(err)
				}
				mustResume(t, o, "orders.>")
				time.Sleep(5*time.Second + after)
				if after > time.Hour { // the next list does not name it any more
					mustPause(t, o, "mail.>")
					mustResume(t, o, "mail.>")
				}
				parked.Header.Del("Nats-Msg-Id")
				c.store(&nats.Msg{Subject: parked.Subject, Header: parked.Header, Data: parked.Data})
				time.Sleep(2 * time.Hour)
				if got := bodies(c.arrivals("ORDERS")); got != want { // within its duplicate window, or after
					t.Errorf("%q arrived, want %q", got, want)
				}
				c.checkEmpty()
			})
		})
	}
}
