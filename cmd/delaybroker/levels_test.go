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

// What an instance says of a lane, and what a consumer says where none does.
func TestOwnerAs(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		lane broker.LaneAnswer
		want string
	}{
		{broker.LaneAnswer{Live: true}, ownerRead},
		{broker.LaneAnswer{Live: true, ResumesAt: now.Add(time.Minute)}, ownerLater},
		{broker.LaneAnswer{Live: true, ResumesAt: now.Add(-time.Minute)}, ownerRead},
		{broker.LaneAnswer{Live: true, Full: true}, ownerLater},
		{broker.LaneAnswer{Live: true, InDoubt: true}, ownerStopped},
		{broker.LaneAnswer{ResumesAt: now.Add(time.Minute)}, ownerStopped},
	} {
		if got := ownerAs(test.lane, now); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.lane, got, test.want)
		}
	}
}

func TestIsRead(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) *time.Time { then := now.Add(-d); return &then }
	consumer := func(name string, waiting int, last *time.Time) jetstream.ConsumerInfo {
		return jetstream.ConsumerInfo{Name: name, NumWaiting: waiting, Delivered: jetstream.SequenceInfo{Last: last}}
	}
	for _, test := range []struct {
		name     string
		consumer jetstream.ConsumerInfo
		want     bool
	}{
		{"waits", consumer("delaybroker-x", 1, nil), true},
		{"is served", consumer("delaybroker-x", 0, at(time.Second)), true},
		{"crashed", consumer("delaybroker-x", 0, at(time.Minute)), false},
		{"never served", consumer("delaybroker-x", 0, nil), false},
		{"somebody else", consumer("where-x", 1, nil), false},
	} {
		if got := isRead(now, []jetstream.ConsumerInfo{test.consumer}); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
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

// A broker that reads no further for now, since it holds all that is due soon, is no broker that is not there.
func TestRestingLaneIsNotUnread(t *testing.T) {
	o := operateOn(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "1s 5m")
	t.Setenv("DELAY_INSTANCE", "kitchen")
	o.serve()
	for range 6000 {
		if _, err := o.js.PublishAsync("delay.5m.x", nil); err != nil {
			t.Fatal(err)
		}
	}
	<-o.js.PublishAsyncComplete()
	eventually(t, "rest", func() bool { return o.laneOf("DELAY_5m").Owner == ownerLater })
	l := o.laneOf("DELAY_5m")
	if l.Held >= 6000 || l.Read == 0 || l.Read >= 6000 || time.Until(l.Resumes) < time.Minute || !strings.HasPrefix(l.Instance, "kitchen-") {
		t.Errorf("got %+v, want a part of it held, and the rest read in some minutes", l)
	}
	out := o.must("levels")
	for _, want := range []string{"0 unread", "later: kitchen-", "5 idle lanes; --all shows them"} {
		if !strings.Contains(out, want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "DELAY_RETRY_1s") || !strings.Contains(o.must("levels", "--all"), "DELAY_RETRY_1s") {
		t.Errorf("got an idle lane without --all, or none with it:\n%s", out)
	}
	d := o.doctor()
	d.want("lanes", "ok", "6 lanes, 6000 messages pending")
	d.wantOnly("durability")
	last := o.idOf("DELAY_5m", 6000).String()
	if w := o.whereIs(last); !strings.HasPrefix(w.Answer, "waiting, due in 4m") {
		t.Errorf("where: got %q", w.Answer)
	}
}

// A user who may not ask the instances does not take their silence for an answer.
func TestLevelsWithoutTheRightToAsk(t *testing.T) {
	o := operateOn(t, userOptions(server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"delayctl.status"}}}))
	t.Setenv("DELAY_LEVELS", "1s 5m")
	o.serve()
	for range 6000 {
		if _, err := o.js.PublishAsync("delay.5m.x", nil); err != nil {
			t.Fatal(err)
		}
	}
	<-o.js.PublishAsyncComplete()
	eventually(t, "rest", func() bool { return o.laneOf("DELAY_5m").Owner == ownerLater })
	s, err := o.js.Stream(t.Context(), "DELAY_5m")
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.ConsumerNames(t.Context()).Name() { // as the server does after five minutes of rest
		if err := o.js.DeleteConsumer(t.Context(), "DELAY_5m", name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("NATS_USER", "tried")
	t.Setenv("NATS_PASSWORD", "tried")
	eventually(t, "doubt", func() bool { return o.laneOf("DELAY_5m").Owner == ownerUnknown })
	if got, want := o.laneOf("DELAY_1s").Owner, ownerRead; got != want {
		t.Errorf("got %q, want %q by its consumer", got, want)
	}
	d := o.doctor()
	d.want("lanes", "ok", "whether somebody reads DELAY_5m is not known", "delayctl.status")
	d.want("rights", "warn", "delayctl.status")
	d.wantOnly("durability", "rights")
}

func TestWatchWords(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1") // nobody is asked
	for _, args := range []string{"levels --watch=-1s", "levels --watch=0s", "levels --watch -1s", "levels --watch soon", "levels --watch=1s 2s", "levels 1s", "levels --watch 0s"} {
		wantVerbError(t, 2, []string{"usage"}, strings.Fields(args)...)
	}
	wantVerbError(t, 1, []string{"connect to NATS"}, "levels", "--watch", "1s")
}

// What came and what went between two looks.
func TestRates(t *testing.T) {
	now := time.Now()
	look := func(at time.Duration, last, held uint64) lanesView {
		return lanesView{Lanes: []laneView{{Stream: "a", Pending: held, info: &jetstream.StreamInfo{
			TimeStamp: now.Add(at), Created: now.Add(-time.Hour), State: jetstream.StreamState{LastSeq: last, Msgs: held},
		}}}}
	}
	before, after := look(0, 100, 60), look(2*time.Second, 140, 50)
	after.since(before)
	if l := after.Lanes[0]; *l.In != 20 || *l.Out != 25 {
		t.Errorf("got %v in and %v out a second, want 20 and 25", *l.In, *l.Out)
	}
	anew := look(4*time.Second, 1, 1)
	anew.Lanes[0].info.Created = now
	if anew.since(after); anew.Lanes[0].In != nil {
		t.Errorf("got %v of a stream that was made anew, want nothing", *anew.Lanes[0].In)
	}
	first := look(0, 1, 1)
	if first.since(lanesView{}); first.Lanes[0].In != nil || rate(first.Lanes[0].In) != "-" {
		t.Error("got a rate from one look")
	}
}
