package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// TestPauseVerbs pauses a target, checks the output of every command, and resumes the target.
func TestPauseVerbs(t *testing.T) {
	natstest.Long(t)
	if apart(t) {
		return
	}
	o := operateOn(t, server.Options{JetStream: true})
	o.serve()
	if _, err := o.js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err != nil {
		t.Fatal(err)
	}
	if out := o.must("pause"); out != "no pattern is paused\n" {
		t.Errorf("before: %q", out)
	}
	if out := o.must("pause", "orders.>"); out != "orders.> is paused\n" {
		t.Errorf("pause: %q", out)
	}
	o.publish("delay.1s.orders.x", "one")
	var all struct {
		Paused []inspect.Pause `json:"paused"`
	}
	eventually(t, "waiting message", func() bool {
		all = decode[struct {
			Paused []inspect.Pause `json:"paused"`
		}](t, o.must("pause", "--json"))
		return len(all.Paused) == 1 && *all.Paused[0].Waiting == 1
	})
	if p := all.Paused[0]; p.Pattern != "orders.>" || p.State != "paused" || time.Since(p.Since) > timeout {
		t.Errorf("the list says %+v", p)
	}
	o.wantPauseShown()
	for _, tt := range []struct {
		words []string
		says  string
	}{
		{[]string{"pause", "orders.>"}, "the pattern is already paused"},
		{[]string{"resume", "orders.x"}, "resume takes exactly a paused pattern; the paused patterns are: orders.>"},
		{[]string{"pause", "orders..x"}, "target pattern"},
	} {
		if _, _, err := o.run(tt.words...); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.words, err, tt.says)
		}
	}
	if out := o.must("resume", "orders.>"); !strings.HasPrefix(out, "orders.> is resumed") {
		t.Errorf("resume: %q", out)
	}
	eventually(t, "delivery", func() bool {
		s, err := o.js.Stream(t.Context(), "ORDERS")
		return err == nil && s.CachedInfo().State.Msgs == 1
	})
	eventually(t, "end of the pause", func() bool { return o.must("pause") == "no pattern is paused\n" })
	if _, _, err := o.run("resume", "orders.>"); err == nil || !strings.Contains(err.Error(), "no pattern is paused") {
		t.Errorf("resume again: %v", err)
	}
}

// fraction matches a fraction of a second in a time.
var fraction = regexp.MustCompile(`T\d\d:\d\d:\d\d\.\d+Z`)

// wantPauseShown wants all commands to show that orders.> is paused, and the place of its message.
func (o *operated) wantPauseShown() {
	t := o.t
	t.Helper()
	for _, words := range [][]string{{"pause"}, {"levels"}, {"retrying"}} {
		if out := o.must(words...); !strings.Contains(out, "orders.>") {
			t.Errorf("%s does not say that orders.> is paused:\n%s", words, out)
		} else if fraction.MatchString(out) || strings.Contains(out, " : ") {
			t.Errorf("%s shows fractions of a second, or an instance that does nothing:\n%s", words, out)
		}
	}
	w := decode[inspect.Whereabouts](t, o.must("where", "DELAY_1s-1", "--json"))
	if w.Stream != "DELAY_PAUSED" || w.Target != "orders.x" || !strings.Contains(w.Answer, "its target is paused since") {
		t.Errorf("where says %+v", w)
	}
	findings := o.must("doctor", "--json", "--skip", "durability,memory,versions,storage,clock")
	if !strings.Contains(findings, "by an operator: orders.> since") || !strings.Contains(findings, "1 messages wait") {
		t.Errorf("doctor says %s", findings)
	}
}
