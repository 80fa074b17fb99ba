package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/inspect"
	"delaybroker/broker/jsapi"
)

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
	wantParts(t, out, " "+l.Instance+" ")
	if strings.Contains(out, "DELAY_OWNERS") {
		t.Errorf("got the instances' own stream as a lane in\n%s", out)
	}
}

// fillIdleLane runs a broker, and publishes 6000 messages to the level 5m. It returns when the lane is idle: the broker
// has read all messages that are due soon, and reads the others later.
func (o *testServer) fillIdleLane() {
	o.t.Helper()
	o.t.Setenv("DELAY_LEVELS", "1s 5m")
	o.serve()
	for range 6000 {
		if _, err := o.js.PublishAsync("delay.5m.x", nil); err != nil {
			o.t.Fatal(err)
		}
	}
	<-o.js.PublishAsyncComplete()
	eventually(o.t, "idle lane", func() bool { return o.laneOf("DELAY_5m").Owner == inspect.OwnerWaits })
}

// The broker is still the owner of an idle lane, although it does not read the lane.
func TestIdleLaneHasOwner(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_INSTANCE", "kitchen")
	o.fillIdleLane()
	l := o.laneOf("DELAY_5m")
	if l.Held >= 6000 || l.LastRead == 0 || l.LastRead >= 6000 || time.Until(l.ResumesAt) < time.Minute ||
		!strings.HasPrefix(l.Instance, "kitchen-") {
		t.Errorf("got %+v, want a part in memory, and the next read in some minutes", l)
	}
	out := o.must("levels")
	wantParts(t, out, "0 lanes unread", "later: kitchen-", "7 idle lanes; --all shows them")
	if strings.Contains(out, "DELAY_RETRY_1s") || !strings.Contains(o.must("levels", "--all"), "DELAY_RETRY_1s") {
		t.Errorf("got an idle lane without --all, or none with it:\n%s", out)
	}
	d := o.doctor()
	d.want("lanes", "ok", "7 lanes, 6,000 messages pending")
	d.wantOnly("durability")
	last := o.idOf("DELAY_5m", 6000).String()
	if w := o.mustFind(last); !strings.HasPrefix(w.Answer, "waiting, due in 4m") {
		t.Errorf("where: got %q", w.Answer)
	}
}

// If the user may not ask the instances, the command does not report their silence as an absence.
func TestLevelsWithoutStatusPermission(t *testing.T) {
	o := newTestServer(t, userDenied("delayctl.status"))
	o.fillIdleLane()
	login(t, "limited", "limited")
	eventually(t, "unknown owner", func() bool { return o.laneOf("DELAY_5m").Owner == inspect.OwnerUnknown })
	d := o.doctor()
	d.want("lanes", "skipped", "the owner of 7 of them is unknown", "delayctl.status")
	d.want("rights", "skipped", "delayctl.status")
	d.wantOnly("durability", "rights", "lanes")
}

func TestLevelsRefused(t *testing.T) {
	o := newTestServer(t, userDenied("$JS.API.STREAM.LIST"))
	login(t, "limited", "limited")
	began := time.Now()
	_, _, err := o.run("levels")
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.LIST") {
		t.Errorf("got %v, want the refused subject", err)
	}
	if took := time.Since(began); took > jsapi.Timeout {
		t.Errorf("took %s to report the refusal", took)
	}
}

func TestLevelsPartlyRefused(t *testing.T) {
	o := newTestServer(t, userDenied("$JS.API.STREAM.MSG.GET.DELAY_5s"))
	o.must("provision")
	o.publish("delay.5s.x", "")
	login(t, "limited", "limited")
	out, _, err := o.run("levels")
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.MSG.GET.DELAY_5s") || out != "" {
		t.Errorf("got %v, want the refused subject and no table\n%s", err, out)
	}
}
