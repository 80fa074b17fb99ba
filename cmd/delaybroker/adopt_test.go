package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// A command without the broker's settings shows the streams that the broker created, and no other levels.
func TestCommandsReadLevelsFromStreams(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_RETRY", "2s,9s")
	t.Setenv("DELAY_LEVELS", "1s,5s,7s")
	o.must("provision")
	t.Setenv("DELAY_LEVELS", "1s,5s,13s")
	o.must("provision") // retires the level 7s
	t.Setenv("DELAY_LEVELS", "")
	t.Setenv("DELAY_RETRY", "")
	states := func() string {
		var all []string
		for _, l := range decode[inspect.Lanes](t, o.must("levels", "--json")).Lanes {
			all = append(all, strings.TrimPrefix(l.Stream, "DELAY_")+" "+string(l.State))
		}
		return strings.Join(all, ", ")
	}
	want := "INTAKE serving, TIMERS serving, 1s serving, 5s serving, 7s retiring, 13s serving, " +
		"RETRY_2s serving, RETRY_9s serving, PAUSED serving, DEAD serving"
	if got := states(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o.doctor().want("streams", "ok", "all 10 exist")

	// If the stream of a level is missing, the intake has no subject for that level.
	natstest.NoError(t, o.js.DeleteStream(t.Context(), "DELAY_5s"))
	if got := states(); !strings.Contains(got, "5s missing") || strings.Contains(got, "RETRY_1s") {
		t.Errorf("got %s, want only 5s missing", got)
	}
	o.doctor().want("streams", "critical", "1 of 10 are missing: DELAY_5s")
}

// If all streams have one prefix, a command reads it from the streams.
func TestCommandsReadPrefixFromStreams(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_PREFIX", "later")
	o.must("provision")
	o.publish("later.5s.orders.x", "")
	id := o.idOf("LATER_5s", 1).String()
	t.Setenv("DELAY_PREFIX", "")
	out, errs, err := o.run("levels")
	if err != nil || !strings.Contains(out, "LATER_5s") || !strings.Contains(errs, "using the prefix later") {
		t.Errorf("got %v, want the streams of the other prefix, and a line that names it\n%s%s", err, out, errs)
	}
	if w := o.mustFind(id); w.Target != "orders.x" {
		t.Errorf("where: got %+v", w)
	}
	if out := o.must("dead", "ls"); out != "no dead letters\n" {
		t.Errorf("dead ls: got %q", out)
	}
	parts := []string{"no stream takes delay.5s.x", "there are streams of the prefix later: set DELAY_PREFIX"}
	wantCommandError(t, 1, parts, "pub", "x", "y", "--level", "5s")

	t.Setenv("DELAY_PREFIX", "sooner")
	if _, errs, _ := o.run("levels"); strings.Contains(errs, "using") {
		t.Errorf("the prefix in DELAY_PREFIX is not used: %s", errs)
	}
	for _, args := range [][]string{{"levels"}, {"timers", "ls"}} { // no streams of this prefix exist yet
		_, errs, _ := o.run(args...)
		wantParts(t, errs, "no stream has the prefix sooner; there are streams of the prefix later: set DELAY_PREFIX")
	}
	o.must("provision")
	t.Setenv("DELAY_PREFIX", "")
	several := "several prefixes: set DELAY_PREFIX to one of later, sooner"
	if _, errs, _ := o.run("levels"); !strings.Contains(errs, several) {
		t.Errorf("two prefixes: got %q", errs)
	}
	o.must("provision") // creates the streams of the settings
	if out, errs, _ := o.run("levels"); !strings.Contains(out, "DELAY_5s") || errs != "" {
		t.Errorf("the standard prefix among others: got %q\n%s", errs, out)
	}
}
