package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// TestPauseCommands pauses a target, checks the output of every command, and resumes the target.
func TestPauseCommands(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{JetStream: true})
	o.serve()
	o.createOrders()
	if out := o.must("pause"); out != "no pattern is paused\n" {
		t.Errorf("before: %q", out)
	}
	if out := o.must("pause", "orders.>"); out != "orders.> is paused; confirmed by 1 of 1 instance\n" {
		t.Errorf("pause: %q", out)
	}
	o.publish("delay.1s.orders.x", "one")
	var pauses []inspect.Pause
	eventually(t, "waiting message", func() bool {
		pauses = decodeLines[inspect.Pause](t, o.must("pause", "--json"))
		return len(pauses) == 1 && *pauses[0].Waiting == 1
	})
	if p := pauses[0]; p.Pattern != "orders.>" || p.State != "paused" || time.Since(p.Since) > timeout {
		t.Errorf("the list has %+v", p)
	}
	o.wantPauseShown()
	for _, tt := range []struct {
		words []string
		says  string
	}{
		{[]string{"pause", "orders.>"}, "the pattern is already paused"},
		{[]string{"resume", "orders.x"}, "give the pattern exactly as it was paused; the paused patterns are: orders.>"},
		{[]string{"pause", "orders..x"}, "want tokens separated by dots"},
	} {
		if _, _, err := o.run(tt.words...); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.words, err, tt.says)
		}
	}
	// A pattern that matches no pending message is probably a mistake.
	if _, stderr, err := o.run("pause", "orders"); err != nil || !strings.Contains(stderr,
		"no pending message has a target that matches orders: for all targets below it, the pattern is 'orders.>'") {
		t.Errorf("pause orders: got %v and %q, want a warning", err, stderr)
	}
	o.must("resume", "orders")
	if out := o.must("resume", "orders.>"); !strings.HasPrefix(out, "orders.> is resumed") {
		t.Errorf("resume: %q", out)
	}
	eventually(t, "delivery", func() bool { return o.messageCount("ORDERS") == 1 })
	eventually(t, "end of the pause", func() bool { return o.must("pause") == "no pattern is paused\n" })
	if _, _, err := o.run("resume", "orders.>"); err == nil || !strings.Contains(err.Error(), "no pattern is paused") {
		t.Errorf("resume again: %v", err)
	}
}

// fraction matches the fraction of a second in a time.
var fraction = regexp.MustCompile(`T\d\d:\d\d:\d\d\.\d+Z`)

// wantPauseShown checks that all commands show the pause of orders.>, and the place of its message.
func (o *testServer) wantPauseShown() {
	t := o.t
	t.Helper()
	for _, words := range [][]string{{"pause"}, {"levels"}, {"retrying"}} {
		stdout, stderr, err := o.run(words...)
		natstest.NoError(t, err)
		if out := stdout + stderr; !strings.Contains(out, "orders.>") {
			t.Errorf("%s does not report the pause of orders.>:\n%s", words, out)
		} else if fraction.MatchString(out) || strings.Contains(out, " : ") {
			t.Errorf("%s shows fractions of a second, or an idle instance:\n%s", words, out)
		}
	}
	w := decode[inspect.Whereabouts](t, o.must("where", "DELAY_1s-1", "--json"))
	if w.Stream != "DELAY_PAUSED" || w.Target != "orders.x" || !strings.Contains(w.Answer, "its target is paused since") {
		t.Errorf("where: got %+v", w)
	}
	findings := o.must("doctor", "--json", "--skip", "durability,memory,versions,storage,clock")
	wantParts(t, findings, "by an operator: orders.> since", "1 message waits", "1 message pending")
}
