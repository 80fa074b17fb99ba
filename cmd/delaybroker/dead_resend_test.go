package main

import (
	"os"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/operation"
	"delaybroker/test/natstest"
)

func TestDeadResend(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.expire", "delayin.soon.orders.expire", "delayin.1ms.$SYS.x", "delayin.1ms.payments.x")
	before := o.must("dead", "ls", "--json")

	dry := o.summary(1, "resend", "--target", "orders.>", "--dry-run")
	want := `[{"outcome":"resent","count":1},{"outcome":"left","count":1,` +
		`"why":"the request was invalid, so its due time is unknown: --now delivers it immediately, ` +
		`--header Delay-Until=TIME at that time","example":"2"}]`
	if got := outcomesText(dry); got != want || !dry.DryRun {
		t.Errorf("got %s, want %s", got, want)
	}
	out, _, _ := o.run("dead", "resend", "--code", "bad_target", "--dry-run")
	wantParts(t, out, "would be left", "name one with --to")
	if after := o.must("dead", "ls", "--json"); after != before {
		t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
	}

	o.createOrders()
	wantParts(t, o.must("dead", "resend", "--target", "orders.>", "--code", "undelivered"), "resent")
	o.summary(0, "resend", "--id", "2", "--now")
	o.summary(0, "resend", "--code", "bad_target", "--to", "orders.late")
	eventually(t, "three deliveries", func() bool { return o.messageCount("ORDERS") == 3 })
	s, err := o.js.Stream(t.Context(), "ORDERS")
	natstest.NoError(t, err)
	for i, l := range decodeLines[operation.Letter](t, before)[:3] {
		m, err := s.GetMsg(t.Context(), uint64(i+1))
		natstest.NoError(t, err)
		got, want := m.Header.Get(message.HeaderID), l.ID
		if got != want || string(m.Data) != "body of "+l.Subject && l.Code != "bad_target" {
			t.Errorf("delivery %d: got %s %q, want %s", i, got, m.Data, want)
		}
	}
	letters := decodeLines[operation.Letter](t, o.must("dead", "ls", "--json"))
	if len(letters) != 1 || letters[0].Target != "payments.x" {
		t.Errorf("the remaining letters are %+v, want only the one that was not selected", letters)
	}
	if got := o.summary(1, "resend", "--id", "1"); len(got.Outcomes) != 0 {
		t.Errorf("a removed letter: got %+v", got)
	}
	wantCommandError(t, 2, []string{"to: the target"}, "dead", "resend", "--all", "--to", "$SYS.x")
}

func TestDeadExpiry(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters()
	msg := nats.NewMsg("delayin.1ms.orders.expire")
	msg.Header.Set("Delay-Expires", "1ms")
	if _, err := o.js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dead letter", func() bool { return o.messageCount("DELAY_DEAD") == 1 })
	wantParts(t, outcomesText(o.summary(1, "resend", "--all")), "--drop-expiry")
	o.createOrders()
	o.summary(0, "resend", "--all", "--drop-expiry")
	eventually(t, "delivery", func() bool { return o.messageCount("ORDERS") == 1 })
	if got := o.messageCount("DELAY_DEAD"); got != 0 {
		t.Errorf("%d letters, want none, since the message was resent without its expiry", got)
	}
}

// The first failure ends a run. The run reports the finished letters.
func TestDeadFails(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.a")
	natstest.NoError(t, o.js.DeleteStream(t.Context(), "DELAY_RETRY_1s"))
	wantCommandError(t, 1, []string{"dead letter 1", "nothing listens on delaysys.retry.1s.orders.a"},
		"dead", "resend", "--all")
	if got := o.messageCount("DELAY_DEAD"); got != 1 {
		t.Errorf("%d letters, want 1: the letter is kept", got)
	}
}

// An interrupted run finishes the letters that it has begun, begins no other, and reports the finished ones.
func TestDeadInterrupted(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	const letters = 2000
	for range letters {
		o.publish("delaydead.expired.x", "")
	}
	self, err := os.FindProcess(os.Getpid())
	natstest.NoError(t, err)
	var once sync.Once
	_, err = o.nc.Subscribe("$JS.API.STREAM.MSG.DELETE.DELAY_DEAD", func(*nats.Msg) {
		once.Do(func() { natstest.NoError(t, self.Signal(os.Interrupt)) })
	})
	natstest.NoError(t, err)
	natstest.NoError(t, o.nc.Flush())
	s := o.summary(1, "rm", "--all")
	if len(s.Outcomes) != 1 || s.Complete || s.Outcomes[0].Count >= letters {
		t.Fatalf("got %+v, want some of %d removed", s, letters)
	}
	if got, want := o.messageCount("DELAY_DEAD"), uint64(letters-s.Outcomes[0].Count); got != want {
		t.Errorf("%d letters remain, want %d as in the output", got, want)
	}
}
