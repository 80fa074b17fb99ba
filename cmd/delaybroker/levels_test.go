package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
)

// laneOf looks at all lanes and returns one.
func (o *operated) laneOf(stream string) laneView {
	o.t.Helper()
	for _, l := range decode[lanesView](o.t, o.must("levels", "--json")).Lanes {
		if l.Stream == stream {
			return l
		}
	}
	o.t.Fatalf("got no lane %s", stream)
	return laneView{}
}

// Without a broker: what is there, what is due, and that nobody sees to it.
func TestLevelsUnread(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	o.publish("delay.5s.orders.expire", "1")
	o.publish("delay.5s.orders.expire", "2")
	o.publish("delay.5s.$JS.API.INFO", "forbidden")

	l := o.laneOf("DELAY_5s")
	if l.Pending != 3 || l.Delay != 5 || l.Owner != ownerNobody || l.State != stateServing {
		t.Errorf("got %+v, want 3 pending, a delay of 5, nobody, serving", l)
	}
	if left := time.Until(l.HeadDue); left < 0 || left > 5*time.Second {
		t.Errorf("head due in: got %s, want up to 5s", left)
	}
	v := decode[lanesView](t, o.must("levels", "--json"))
	if got, want := v.Totals.Pending, uint64(3); got != want {
		t.Errorf("pending in all: got %d, want %d", got, want)
	}
	if got, want := v.Totals.Unread, 6; got != want {
		t.Errorf("unread: got %d, want %d", got, want)
	}
	var order []string
	for _, l := range v.Lanes {
		order = append(order, l.Stream)
	}
	want := "DELAY_INTAKE DELAY_1s DELAY_5s DELAY_RETRY_1s DELAY_RETRY_5s DELAY_RETRY_30s DELAY_DEAD"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("order: got %s, want %s", got, want)
	}

	o.publish("delayin.10ms.orders.expire", "late")
	eventually(t, "overdue message", func() bool {
		l := o.laneOf("DELAY_INTAKE")
		return l.Overdue >= lateFrom.Seconds() && l.Overdue < 10
	})
	out := o.must("levels")
	for _, want := range []string{"LANE", "nobody", "DELAY_RETRY_30s", "6 unread", "0 dead letters", "now"} {
		if !strings.Contains(out, want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("got colours in a pipe: %q", out)
	}
}

func TestLevelsRead(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.serve()
	for _, stream := range []string{"DELAY_INTAKE", "DELAY_5s", "DELAY_RETRY_1s"} {
		if got, want := o.laneOf(stream).Owner, ownerRead; got != want {
			t.Errorf("owner of %s: got %q, want %q", stream, got, want)
		}
	}
	if got, want := o.laneOf("DELAY_DEAD").Owner, ""; got != want {
		t.Errorf("owner of dead letters: got %q, want %q", got, want)
	}
}

// Who owns a lane is in the table that instances keep, and a stream of their own is no lane.
func TestLevelsInstance(t *testing.T) {
	o := operateOn(t, server.Options{})
	t.Setenv("DELAY_INSTANCE", "kitchen")
	o.serve()
	l := o.laneOf("DELAY_5s")
	if !strings.HasPrefix(l.Instance, "kitchen-") {
		t.Errorf("got instance %q, want kitchen and what makes it unique", l.Instance)
	}
	out := o.must("levels")
	if want := "read: " + l.Instance; !strings.Contains(out, want) {
		t.Errorf("got no %q in\n%s", want, out)
	}
	if strings.Contains(out, "DELAY_OWNERS") {
		t.Errorf("got the instances' own stream as a lane in\n%s", out)
	}
}

func TestLevelsStates(t *testing.T) {
	o := operateOn(t, server.Options{})
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
	for stream, want := range map[string]string{
		"DELAY_1s": stateFull, "DELAY_5s": stateServing, "DELAY_7s": stateRetiring, "DELAY_9s": stateNewer, "DELAY_11s": stateMissing,
		"DELAY_RETRY_1s": stateForeign, "DELAY_DEAD": stateServing, "DELAY_13s": stateBroken,
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
	o := operateOn(t, server.Options{})
	o.must("provision")
	o.publish("delayin.soon.x", "")
	if got, want := o.laneOf("DELAY_INTAKE").HeadDead, "bad_time"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if out := o.must("levels"); !strings.Contains(out, "dead: bad_time") {
		t.Errorf("got no word of it in\n%s", out)
	}
}

func TestLevelsWatch(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	ctx, cancel := context.WithCancel(t.Context())
	shown := make(writes)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"levels", "--watch=1ms", "--json"}, shown, shown) }()
	for n := 0; ; {
		select {
		case text := <-shown:
			if v := decode[lanesView](t, text); len(v.Lanes) != 7 {
				t.Errorf("got %d lanes, want 7", len(v.Lanes))
			}
			if n++; n == 3 {
				cancel()
			}
			continue
		case err := <-ended:
			if err != nil || n < 3 {
				t.Errorf("got %v after %d looks, want nil after an interrupt and 3", err, n)
			}
		case <-time.After(patience):
			t.Error("got no end")
		}
		cancel()
		return
	}
}

// writes are what was written, each by itself.
type writes chan string

func (w writes) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestLevelsRefused(t *testing.T) {
	o := operateOn(t, userOptions(server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.LIST"}}}))
	t.Setenv("NATS_USER", "tried")
	t.Setenv("NATS_PASSWORD", "tried")
	began := time.Now()
	_, _, err := o.run("levels")
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.LIST") {
		t.Errorf("got %v, want the subject that was refused", err)
	}
	if took := time.Since(began); took > apiPatience {
		t.Errorf("took %s to find out", took)
	}
}

func TestLevelsHalfRefused(t *testing.T) {
	o := operateOn(t, userOptions(server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.MSG.GET.DELAY_5s"}}}))
	o.must("provision")
	o.publish("delay.5s.x", "")
	t.Setenv("NATS_USER", "tried")
	t.Setenv("NATS_PASSWORD", "tried")
	out, _, err := o.run("levels")
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.MSG.GET.DELAY_5s") || out != "" {
		t.Errorf("got %v, want the subject that was refused and no table\n%s", err, out)
	}
}

func TestLevelsHeadOfANewerBroker(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	msg := nats.NewMsg("delaysys.hop.5s.x")
	msg.Header.Set(message.HeaderFormat, "99")
	if _, err := o.js.PublishMsg(t.Context(), o.sealed(msg)); err != nil {
		t.Fatal(err)
	}
	if l := o.laneOf("DELAY_5s"); l.Error != newerMessage || l.HeadDead != "" || !l.HeadDue.IsZero() {
		t.Errorf("got %+v, want nothing but %q", l, newerMessage)
	}
}

func TestOwnerOf(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) *time.Time { then := now.Add(-d); return &then }
	consumer := func(name string, waiting int, last *time.Time) jetstream.ConsumerInfo {
		return jetstream.ConsumerInfo{Name: name, NumWaiting: waiting, Delivered: jetstream.SequenceInfo{Last: last}}
	}
	for _, test := range []struct {
		name     string
		consumer jetstream.ConsumerInfo
		pending  uint64
		overdue  float64
		want     string
	}{
		{"waits", consumer("delaybroker-x", 1, nil), 0, 0, ownerRead},
		{"is served", consumer("delaybroker-x", 0, at(time.Second)), 9, 0, ownerRead},
		{"crashed", consumer("delaybroker-x", 0, at(time.Minute)), 9, 0, ownerNobody},
		{"never served", consumer("delaybroker-x", 0, nil), 9, 0, ownerNobody},
		{"somebody else", consumer("where-x", 1, nil), 9, 0, ownerNobody},
		{"holds all it may", jetstream.ConsumerInfo{}, broker.DefaultHoldMessages + 1, 0, ownerLater},
		{"large and late", jetstream.ConsumerInfo{}, broker.DefaultHoldMessages + 1, 2, ownerNobody},
	} {
		l := laneView{Pending: test.pending, Overdue: test.overdue, info: &jetstream.StreamInfo{TimeStamp: now}}
		if got := ownerOf(l, []jetstream.ConsumerInfo{test.consumer}); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestIsFull(t *testing.T) {
	for _, test := range []struct {
		maxMsgs, maxBytes int64
		msgs, bytes       uint64
		want              bool
	}{
		{-1, -1, 1 << 40, 1 << 60, false},
		{0, 0, 1, 1, false},
		{100, -1, 97, 0, false},
		{100, -1, 98, 0, true},
		{-1, 1000, 1, 979, false},
		{-1, 1000, 1, 980, true},
	} {
		info := &jetstream.StreamInfo{
			Config: jetstream.StreamConfig{MaxMsgs: test.maxMsgs, MaxBytes: test.maxBytes},
			State:  jetstream.StreamState{Msgs: test.msgs, Bytes: test.bytes},
		}
		if got := isFull(info); got != test.want {
			t.Errorf("%s: got %v, want %v", fmt.Sprintf("%+v", test), got, test.want)
		}
	}
}
