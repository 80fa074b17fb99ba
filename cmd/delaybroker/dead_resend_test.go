package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/terminal"
)

func TestDeadResend(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.letters("delayin.1ms.orders.expire", "delayin.soon.orders.expire", "delayin.1ms.$SYS.x", "delayin.1ms.payments.x")
	before := o.must("dead", "ls", "--json")

	dry := o.summary(1, "resend", "--target", "orders.>", "--dry-run")
	want := `[{"did":"resent","letters":1},{"did":"left","letters":1,` +
		`"why":"the request was invalid, so its due time is unknown: --now delivers it immediately, ` +
		`--header Delay-Until=TIME at that time","number":2}]`
	if got := dry.String(); got != want || !dry.DryRun {
		t.Errorf("got %s, want %s", got, want)
	}
	out, _, _ := o.run("dead", "resend", "--code", "bad_target", "--dry-run")
	if !strings.Contains(out, "would be left") || !strings.Contains(out, "name one with --to") {
		t.Errorf("got\n%s", out)
	}
	if after := o.must("dead", "ls", "--json"); after != before {
		t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
	}

	o.createOrders()
	if out := o.must("dead", "resend", "--target", "orders.>", "--code", "undelivered"); !strings.Contains(out, "resent") {
		t.Errorf("got\n%s", out)
	}
	o.summary(0, "resend", "--id", "2", "--now")
	o.summary(0, "resend", "--code", "bad_target", "--to", "orders.late")
	eventually(t, "three deliveries", func() bool { return o.held("ORDERS") == 3 })
	s, err := o.js.Stream(t.Context(), "ORDERS")
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range decodeLines[letterView](t, before)[:3] {
		m, err := s.GetMsg(t.Context(), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		got, want := m.Header.Get(message.HeaderID), l.ID
		if got != want || string(m.Data) != "body of "+l.Subject && l.Code != "bad_target" {
			t.Errorf("delivery %d: got %s %q, want %s", i, got, m.Data, want)
		}
	}
	left := decodeLines[letterView](t, o.must("dead", "ls", "--json"))
	if len(left) != 1 || left[0].Target != "payments.x" {
		t.Errorf("left are %+v, want the letter that was not chosen", left)
	}
	if got := o.summary(1, "resend", "--id", "1"); len(got.Outcomes) != 0 {
		t.Errorf("what is gone: got %s", got)
	}
	wantVerbError(t, 2, []string{"--to"}, "dead", "resend", "--all", "--to", "$SYS.x")
}

func TestDeadExpiry(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.letters()
	msg := nats.NewMsg("delayin.1ms.orders.expire")
	msg.Header.Set("Delay-Expires", "1ms")
	if _, err := o.js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dead letter", func() bool { return o.held("DELAY_DEAD") == 1 })
	if got := o.summary(1, "resend", "--all").String(); !strings.Contains(got, "--drop-expiry") {
		t.Errorf("got %s", got)
	}
	o.createOrders()
	o.summary(0, "resend", "--all", "--drop-expiry")
	eventually(t, "delivery", func() bool { return o.held("ORDERS") == 1 })
	if got := o.held("DELAY_DEAD"); got != 0 {
		t.Errorf("%d letters, want none: it did not expire again", got)
	}
}

func TestDeadRemove(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.letters("delayin.1ms.orders.expire", "delayin.soon.orders.expire", "delayin.1ms.payments.x")
	if got, want := o.summary(0, "rm", "--all", "--dry-run").String(), `[{"did":"removed","letters":3}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := o.held("DELAY_DEAD"); got != 3 {
		t.Errorf("%d letters after a dry run, want 3", got)
	}
	out := o.must("dead", "rm", "--target", "orders.>")
	if !strings.Contains(out, "removed") || !strings.Contains(out, "2") {
		t.Errorf("got\n%s", out)
	}
	left := decodeLines[letterView](t, o.must("dead", "ls", "--json"))
	if len(left) != 1 || left[0].Target != "payments.x" {
		t.Errorf("left are %+v", left)
	}
}

// A run that is interrupted finishes the letters that it has begun, begins no other, and says what is done.
func TestDeadInterrupted(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	const letters = 200
	for range letters {
		o.publish("delaydead.expired.x", "")
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	noticed, stop := interruptible(t.Context())
	defer stop()
	var out bytes.Buffer
	var once sync.Once
	a := &app{Printer: terminal.Printer{Out: &out, Err: io.Discard, JSON: true}}
	err = a.withLetters(t.Context(), letterChoice{all: true}, func(ctx context.Context, d deadLetters) error {
		w := deadWork{deadLetters: d, LetterWork: d.Removing(d.filter, false)}
		w.Do = func(ctx context.Context, l deadletter.Letter) error {
			once.Do(func() {
				if err := self.Signal(os.Interrupt); err != nil {
					t.Error(err)
				}
			})
			<-noticed.Done()
			return d.Remove(ctx, l)
		}
		return a.work(ctx, w)
	})
	if got, want := exitCode(err), 1; got != want {
		t.Errorf("exit code %d (%v), want %d", got, err, want)
	}
	s := decode[letterSummary](t, out.String())
	if len(s.Outcomes) != 1 || s.Complete || s.Outcomes[0].Letters >= letters {
		t.Fatalf("got %+v, want some of %d removed", s, letters)
	}
	if got, want := o.held("DELAY_DEAD"), uint64(letters-s.Outcomes[0].Letters); got != want {
		t.Errorf("%d letters are left, want %d: what is said is what is done", got, want)
	}
}

// The first failure ends a run. The letters that were done are reported.
func TestDeadFails(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.letters("delayin.1ms.orders.a")
	if err := o.js.DeleteStream(t.Context(), "DELAY_RETRY_1s"); err != nil {
		t.Fatal(err)
	}
	wantVerbError(t, 1, []string{"dead letter 1", "nothing listens on delaysys.retry.1s.orders.a"},
		"dead", "resend", "--all")
	if got := o.held("DELAY_DEAD"); got != 1 {
		t.Errorf("%d letters, want it kept", got)
	}
}

// A missing right is named. A reader needs no more rights than these.
func TestDeadRefused(t *testing.T) {
	o := operateOn(t, server.Options{NoAuthUser: "all", Users: []*server.User{
		{Username: "all", Password: "a"},
		{Username: "reader", Password: "r", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{
				"$JS.API.STREAM.LIST", // the secrets, to know a broker's letters by their seals
				"$JS.API.STREAM.INFO.DELAY_DEAD",
				"$JS.API.STREAM.MSG.GET.DELAY_DEAD", // whether a letter is still there
				"$JS.API.CONSUMER.CREATE.DELAY_DEAD.*",
				"$JS.API.CONSUMER.MSG.NEXT.DELAY_DEAD.*",
				"$JS.API.CONSUMER.DELETE.DELAY_DEAD.*",
			}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}},
	}})
	o.letters("delayin.1ms.orders.a")
	t.Setenv("NATS_USER", "reader")
	t.Setenv("NATS_PASSWORD", "r")
	if got := len(decodeLines[letterView](t, o.must("dead", "ls", "--json"))); got != 1 {
		t.Errorf("a reader sees %d letters, want 1", got)
	}
	if out := o.must("dead", "show", "1"); !strings.Contains(out, "body of") {
		t.Errorf("a reader sees\n%s", out)
	}
	for _, test := range []struct{ verb, subject string }{
		{"resend", "delaysys.retry.1s.orders.a"},
		{"rm", "$JS.API.STREAM.MSG.DELETE.DELAY_DEAD"},
	} {
		started := time.Now()
		wantVerbError(t, 1, []string{test.subject, "delaybroker doctor"}, "dead", test.verb, "--all")
		if took := time.Since(started); took > jsapi.Timeout {
			t.Errorf("%s: the refusal was told after %s, as if it were silence", test.verb, took)
		}
	}
	if got := o.held("DELAY_DEAD"); got != 1 {
		t.Errorf("%d letters, want it kept", got)
	}
}
