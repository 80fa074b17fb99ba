package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// laneOf reads all lanes, and returns one.
func (o *testServer) laneOf(stream string) inspect.Lane {
	o.t.Helper()
	for _, l := range decode[inspect.Lanes](o.t, o.must("levels", "--json")).Lanes {
		if l.Stream == stream {
			return l
		}
	}
	o.t.Fatalf("got no lane %s", stream)
	return inspect.Lane{}
}

// Without a broker, levels shows the stored and the due messages, and lanes without a reader.
func TestLevelsUnread(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	o.must("provision")
	o.publish("delay.5s.orders.expire", "1")
	o.publish("delay.5s.orders.expire", "2")
	o.publish("delay.5s.$JS.API.INFO", "forbidden")

	l := o.laneOf("DELAY_5s")
	if l.Pending != 3 || l.Delay != 5 || l.Owner != inspect.NoOwner || l.State != inspect.Serving {
		t.Errorf("got %+v, want 3 pending, a delay of 5, no reader, serving", l)
	}
	if left := time.Until(l.HeadDue); left < 0 || left > 5*time.Second {
		t.Errorf("head due in: got %s, want up to 5s", left)
	}
	v := decode[inspect.Lanes](t, o.must("levels", "--json"))
	if got, want := v.Totals.Pending, uint64(3); got != want {
		t.Errorf("total pending: got %d, want %d", got, want)
	}
	if got, want := v.Totals.UnreadLanes, 7; got != want {
		t.Errorf("unread: got %d, want %d", got, want)
	}
	var order []string
	for _, l := range v.Lanes {
		order = append(order, l.Stream)
	}
	want := "DELAY_INTAKE DELAY_TIMERS DELAY_1s DELAY_5s " +
		"DELAY_RETRY_1s DELAY_RETRY_5s DELAY_RETRY_30s DELAY_PAUSED DELAY_DEAD"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("order: got %s, want %s", got, want)
	}

	o.publish("delayin.10ms.orders.expire", "late")
	eventually(t, "overdue message", func() bool {
		l := o.laneOf("DELAY_INTAKE")
		return l.Overdue >= time.Second.Seconds() && l.Overdue < 10
	})
	out := o.must("levels")
	wantParts(t, out, "LANE", "nobody", "DELAY_RETRY_30s", "7 lanes unread", "0 dead letters", "now")
	if strings.Contains(out, "\x1b") {
		t.Errorf("got colours in a pipe: %q", out)
	}
}

func TestLevelsStates(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "1s 5s 7s 9s 13s")
	o.must("provision")
	o.change("DELAY_13s", func(c *jetstream.StreamConfig) {
		c.Metadata["delaybroker.level"] = "soon"
		c.Subjects = []string{"delaysys.hop.13s.>"}
	})
	o.publish("delay.7s.x", "left behind")
	t.Setenv("DELAY_LEVELS", "1s 5s 9s 11s")
	o.must("provision")
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 })
	o.publish("delay.1s.x", "full")
	natstest.NoError(t, o.js.DeleteStream(t.Context(), "DELAY_11s"))
	o.change("DELAY_RETRY_1s", func(c *jetstream.StreamConfig) { c.Metadata = nil })
	for stream, want := range map[string]inspect.State{
		"DELAY_1s":       inspect.Full,
		"DELAY_5s":       inspect.Serving,
		"DELAY_7s":       inspect.Retiring,
		"DELAY_11s":      inspect.Missing,
		"DELAY_13s":      inspect.Broken,
		"DELAY_RETRY_1s": inspect.Foreign,
		"DELAY_DEAD":     inspect.Serving,
	} {
		if got := o.laneOf(stream).State; got != want {
			t.Errorf("state of %s: got %q, want %q", stream, got, want)
		}
	}
	if got, want := o.laneOf("DELAY_7s").Pending, uint64(1); got != want {
		t.Errorf("pending in the retiring level: got %d, want %d", got, want)
	}
}

func TestLevelsHeadIsABadRequest(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	o.publish("delayin.soon.x", "")
	if got, want := o.laneOf("DELAY_INTAKE").HeadDeadCode, "bad_time"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantParts(t, o.must("levels"), "dead: bad_time")
}

func TestLevelsWatch(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	ctx, cancel := context.WithCancel(t.Context())
	shown := make(writes)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"levels", "--watch=1ms", "--json"}, shown, shown) }()
	for n := 0; ; {
		select {
		case text := <-shown:
			if v := decode[inspect.Lanes](t, text); len(v.Lanes) != 9 {
				t.Errorf("got %d lanes, want 9", len(v.Lanes))
			}
			if n++; n == 3 {
				cancel()
			}
			continue
		case err := <-ended:
			if err != nil || n < 3 {
				t.Errorf("got %v after %d updates, want nil after an interrupt and 3", err, n)
			}
		case <-time.After(timeout):
			t.Error("got no end")
		}
		cancel()
		return
	}
}

// writes has the text of each call of Write.
type writes chan string

func (w writes) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestLevelsHeadOfANewerBroker(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	msg := nats.NewMsg("delaysys.hop.5s.x")
	msg.Header.Set(message.HeaderState, "99 x")
	if _, err := o.js.PublishMsg(t.Context(), o.sealed(msg)); err != nil {
		t.Fatal(err)
	}
	const newer = "the first message was written by a newer broker, and waits for one"
	if l := o.laneOf("DELAY_5s"); l.Error != newer || l.HeadDeadCode != "" || !l.HeadDue.IsZero() {
		t.Errorf("got %+v, want only %q", l, newer)
	}
}

func TestLevelsWatchUsage(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1") // no request is sent
	for _, args := range []string{
		"levels --watch=-1s", "levels --watch=0s", "levels --watch -1s", "levels --watch soon",
		"levels --watch=1s 2s", "levels 1s", "levels --watch 0s",
	} {
		wantCommandError(t, 2, []string{"usage"}, strings.Fields(args)...)
	}
	wantCommandError(t, 1, []string{"connect to NATS"}, "levels", "--watch", "1s")
}

func TestFormatRate(t *testing.T) {
	for _, test := range []struct {
		rate *float64
		want string
	}{{nil, "-"}, {new(0.0), "-"}, {new(0.25), "0.2"}, {new(9.96), "10.0"}, {new(10.4), "10"}} {
		if got := formatRate(test.rate); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
