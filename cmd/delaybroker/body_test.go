package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/operation"
	"delaybroker/broker/text"
)

// Headers and bodies of waiting messages are shown: text unchanged, other bytes as hex, both up to a limit. JSON has
// complete headers and bodies.
func TestBodyOutput(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_TIMERS", "on")
	t.Setenv("DELAY_LEVELS", "1h")
	o.must("provision")
	large := strings.Repeat("x", text.MaxBody+1)
	for _, body := range []string{"one\ntwo", "\x1b[31m\x00", large} {
		m := &nats.Msg{Subject: "delay.1h.orders.a", Header: nats.Header{"X-A": {"1", "\x1b[2J"}}, Data: []byte(body)}
		if _, err := o.js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	o.must("pub", "orders.b", "of a timer", "--in", "30m", "--key", "k", "-H", "X-B: 2")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"pending", "show", "DELAY_1h-1"},
			[]string{"waiting, due in", "X-A: 1, ·[2J\n", "\nbody, 7 bytes\none\ntwo\n"}},
		{[]string{"where", "--body", "DELAY_1h-1"}, []string{"\nbody, 7 bytes\none\ntwo\n"}},
		{[]string{"pending", "show", "DELAY_1h-2"}, []string{"\nbody, 6 bytes\n00000000  1b 5b 33 31 6d 00 "}},
		{[]string{"pending", "show", "DELAY_1h-3"},
			[]string{"body, 65537 bytes, of which the first 65536 are shown; --json prints all"}},
		{[]string{"timers", "show", "k", "orders.b"},
			[]string{"pending", "X-B: 2\n", "body, 10 bytes\nof a timer\n"}},
	} {
		got := o.must(test.args...)
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%q: got no %q in\n%.2000s", test.args, want, got)
			}
		}
	}
	if got := o.must("where", "DELAY_1h-1"); strings.Contains(got, "two") {
		t.Errorf("where shows the body without --body:\n%s", got)
	}
	whole := decode[operation.Content](t, o.must("pending", "show", "DELAY_1h-3", "--json"))
	if string(whole.Payload) != large || whole.Size != len(large) || len(whole.Headers["X-A"]) != 2 {
		t.Errorf("JSON: got %d of %d bytes and %v", len(whole.Payload), whole.Size, whole.Headers)
	}
	timer := decode[operation.Content](t, o.must("timers", "show", "k", "orders.b", "--json"))
	if string(timer.Payload) != "of a timer" {
		t.Errorf("JSON of a timer: got %+v", timer)
	}
	wantCommandError(t, 4, nil, "timers", "show", "nobody", "orders.b")
}
