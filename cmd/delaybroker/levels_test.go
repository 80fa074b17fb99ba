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
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
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
	if got, want := v.Totals.Unread, 7; got != want {
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
	for _, want := range []string{"LANE", "nobody", "DELAY_RETRY_30s", "7 unread", "0 dead letters", "now"} {
		if !strings.Contains(out, want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("got colours in a pipe: %q", out)
	}
}

func TestLevelsRead(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.serve()
	for _, stream := range []string{"DELAY_INTAKE", "DELAY_5s", "DELAY_RETRY_1s"} {
		if got, want := o.laneOf(stream).Owner, inspect.OwnerReads; got != want {
			t.Errorf("owner of %s: got %q, want %q", stream, got, want)
		}
	}
	if got, want := o.laneOf("DELAY_DEAD").Owner, inspect.Owner(""); got != want {
		t.Errorf("owner of dead letters: got %q, want %q", got, want)
	}
}

// The table of owners names the owner of a lane. The stream of that table is not a lane.
func TestLevelsInstance(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_INSTANCE", "kitchen")
	o.serve()
	l := o.laneOf("DELAY_5s")
	if !strings.HasPrefix(l.Instance, "kitchen-") {
		t.Errorf("got instance %q, want kitchen and a unique suffix", l.Instance)
	}
	out := o.must("levels")
	if want := " " + l.Instance + " "; !strings.Contains(out, want) {
		t.Errorf("got no %q in\n%s", want, out)
	}
	if strings.Contains(out, "DELAY_OWNERS") {
		t.Errorf("got the instances' own stream as a lane in\n%s", out)
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
		c.Metadata["delaybroker.format"] = "one"
		c.Subjects = []string{"delaysys.hop.13s.>"}
	})
	o.publish("delay.7s.x", "left behind")
	t.Setenv("DELAY_LEVELS", "1s 5s 9s 11s")
	o.must("provision")
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 })
	o.publish("delay.1s.x", "full")
	o.change("DELAY_9s", func(c *jetstream.StreamConfig) { c.Metadata["delaybroker.format"] = "99" })
	if err := o.js.DeleteStream(t.Context(), "DELAY_11s"); err != nil {
		t.Fatal(err)
	}
	o.change("DELAY_RETRY_1s", func(c *jetstream.StreamConfig) { c.Metadata = nil })
	for stream, want := range map[string]inspect.State{
		"DELAY_1s":       inspect.Full,
		"DELAY_5s":       inspect.Serving,
		"DELAY_7s":       inspect.Retiring,
		"DELAY_9s":       inspect.Newer,
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
	if out := o.must("levels"); !strings.Contains(out, "dead: bad_time") {
		t.Errorf("the stream is not named in\n%s", out)
	}
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

func TestLevelsRefused(t *testing.T) {
	o := newTestServer(t, userDenied("$JS.API.STREAM.LIST"))
	t.Setenv("NATS_USER", "tried")
	t.Setenv("NATS_PASSWORD", "tried")
	began := time.Now()
	_, _, err := o.run("levels")
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.LIST") {
		t.Errorf("got %v, want the refused subject", err)
	}
	if took := time.Since(began); took > jsapi.Timeout {
		t.Errorf("took %s to report the refusal", took)
	}
}

func TestLevelsHalfRefused(t *testing.T) {
	o := newTestServer(t, userDenied("$JS.API.STREAM.MSG.GET.DELAY_5s"))
	o.must("provision")
	o.publish("delay.5s.x", "")
	t.Setenv("NATS_USER", "tried")
	t.Setenv("NATS_PASSWORD", "tried")
	out, _, err := o.run("levels")
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.MSG.GET.DELAY_5s") || out != "" {
		t.Errorf("got %v, want the refused subject and no table\n%s", err, out)
	}
}

func TestLevelsHeadOfANewerBroker(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	msg := nats.NewMsg("delaysys.hop.5s.x")
	msg.Header.Set(message.HeaderFormat, "99")
	if _, err := o.js.PublishMsg(t.Context(), o.sealed(msg)); err != nil {
		t.Fatal(err)
	}
	const newer = "written by a newer broker; it waits for one"
	if l := o.laneOf("DELAY_5s"); l.Error != newer || l.HeadDeadCode != "" || !l.HeadDue.IsZero() {
		t.Errorf("got %+v, want only %q", l, newer)
	}
}

// A broker that holds all messages that are due soon does not read. It is still the reader of the lane.
func TestRestingLaneIsNotUnread(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "1s 5m")
	t.Setenv("DELAY_INSTANCE", "kitchen")
	o.serve()
	for range 6000 {
		if _, err := o.js.PublishAsync("delay.5m.x", nil); err != nil {
			t.Fatal(err)
		}
	}
	<-o.js.PublishAsyncComplete()
	eventually(t, "rest", func() bool { return o.laneOf("DELAY_5m").Owner == inspect.OwnerWaits })
	l := o.laneOf("DELAY_5m")
	if l.Held >= 6000 || l.LastRead == 0 || l.LastRead >= 6000 || time.Until(l.ResumesAt) < time.Minute ||
		!strings.HasPrefix(l.Instance, "kitchen-") {
		t.Errorf("got %+v, want a part in memory, and the next read in some minutes", l)
	}
	out := o.must("levels")
	for _, want := range []string{"0 unread", "later: kitchen-", "7 idle lanes; --all shows them"} {
		if !strings.Contains(out, want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "DELAY_RETRY_1s") || !strings.Contains(o.must("levels", "--all"), "DELAY_RETRY_1s") {
		t.Errorf("got an idle lane without --all, or none with it:\n%s", out)
	}
	d := o.doctor()
	d.want("lanes", "ok", "7 lanes, 6000 messages pending")
	d.wantOnly("durability")
	last := o.idOf("DELAY_5m", 6000).String()
	if w := o.mustFind(last); !strings.HasPrefix(w.Answer, "waiting, due in 4m") {
		t.Errorf("where: got %q", w.Answer)
	}
}

// If the user may not ask the instances, the command does not report their silence as an absence.
func TestLevelsWithoutTheRightToAsk(t *testing.T) {
	o := newTestServer(t, userDenied("delayctl.status"))
	t.Setenv("DELAY_LEVELS", "1s 5m")
	o.serve()
	for range 6000 {
		if _, err := o.js.PublishAsync("delay.5m.x", nil); err != nil {
			t.Fatal(err)
		}
	}
	<-o.js.PublishAsyncComplete()
	eventually(t, "rest", func() bool { return o.laneOf("DELAY_5m").Owner == inspect.OwnerWaits })
	s, err := o.js.Stream(t.Context(), "DELAY_5m")
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.ConsumerNames(t.Context()).Name() { // as the server does after five minutes without activity
		if err := o.js.DeleteConsumer(t.Context(), "DELAY_5m", name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("NATS_USER", "tried")
	t.Setenv("NATS_PASSWORD", "tried")
	eventually(t, "doubt", func() bool { return o.laneOf("DELAY_5m").Owner == inspect.OwnerUnknown })
	if got, want := o.laneOf("DELAY_1s").Owner, inspect.OwnerReads; got != want {
		t.Errorf("got %q, want %q by its consumer", got, want)
	}
	d := o.doctor()
	d.want("lanes", "ok", "the reader of DELAY_5m is unknown", "delayctl.status")
	d.want("rights", "skipped", "delayctl.status")
	d.wantOnly("durability", "rights")
}

func TestWatchWords(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1") // no request is sent
	for _, args := range []string{
		"levels --watch=-1s", "levels --watch=0s", "levels --watch -1s", "levels --watch soon",
		"levels --watch=1s 2s", "levels 1s", "levels --watch 0s",
	} {
		wantCommandError(t, 2, []string{"usage"}, strings.Fields(args)...)
	}
	wantCommandError(t, 1, []string{"connect to NATS"}, "levels", "--watch", "1s")
}

func TestRateInWords(t *testing.T) {
	for _, test := range []struct {
		rate *float64
		want string
	}{{nil, "-"}, {new(0.0), "-"}, {new(0.25), "0.2"}, {new(9.96), "10.0"}, {new(10.4), "10"}} {
		if got := rate(test.rate); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
