package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/test/natstest"
)

// letters runs a broker, and publishes to each of these subjects, in this order, one message that becomes a dead
// letter.
func (o *testServer) letters(subjects ...string) {
	o.t.Helper()
	o.t.Setenv("DELAY_ATTEMPTS", "1")
	o.t.Setenv("DELAY_DELIVER", "stream") // a target without a stream refuses
	o.serve()
	for i, subject := range subjects {
		o.publish(subject, "body of "+subject)
		eventually(o.t, "dead letter of "+subject, func() bool { return o.messageCount("DELAY_DEAD") == uint64(i+1) })
	}
}

// messageCount returns the number of messages in a stream.
func (o *testServer) messageCount(stream string) uint64 {
	o.t.Helper()
	s, err := o.js.Stream(o.t.Context(), stream)
	if err != nil {
		o.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// summary runs a command that resends or removes letters, and returns its summary.
func (o *testServer) summary(code int, args ...string) letterSummary {
	o.t.Helper()
	out, errs, err := o.run(append([]string{"dead", "--json"}, args...)...)
	if got := exitCode(err); got != code {
		o.t.Fatalf("%q: exit code %d (%v), want %d\n%s%s", args, got, err, code, out, errs)
	}
	return decode[letterSummary](o.t, out)
}

func (s letterSummary) String() string {
	text, _ := json.Marshal(s.Outcomes)
	return string(text)
}

func TestDeadListAndShow(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.expire", "delayin.soon.orders.expire", "delayin.1ms.$SYS.x")
	out := o.must("dead", "ls")
	for _, want := range []string{"NUMBER", "undelivered", "orders.expire", "bad_time", "bad_target", "DELAY_INTAKE-1-"} {
		if !strings.Contains(out, want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
	all := decodeLines[letterView](t, o.must("dead", "ls", "--json"))
	if len(all) != 3 {
		t.Fatalf("%d letters, want 3", len(all))
	}
	first := all[0]
	if first.Number != 1 || first.Target != "orders.expire" || first.Subject != "delayin.1ms.orders.expire" ||
		first.Size != len("body of delayin.1ms.orders.expire") || first.Payload != nil ||
		first.Due.IsZero() || first.Unreadable != "" {
		t.Errorf("got %+v", first)
	}
	if got := all[1]; got.Code != "bad_time" || !got.Due.IsZero() {
		t.Errorf("a letter whose time could not be parsed: got %+v, want no due time", got)
	}
	o.wantDeadFilters(all)
	o.wantDeadLimits()

	out = o.must("dead", "show", first.ID)
	for _, want := range []string{
		first.ID, "undelivered", "refused all of 1 attempts", "delayin.1ms.orders.expire",
		"body, 33 bytes\nbody of delayin.1ms",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
	shown := decode[letterView](t, o.must("dead", "show", "3", "--json"))
	got, want := string(shown.Payload), "body of delayin.1ms.$SYS.x"
	if got != want || shown.Code != "bad_target" || shown.Target != "" {
		t.Errorf("got %+v with %q", shown, got)
	}
	wantCommandError(t, 1, nil, "dead", "show", "99")
}

// wantDeadFilters selects among three letters by each flag.
func (o *testServer) wantDeadFilters(all []letterView) {
	t := o.t
	t.Helper()
	for _, test := range []struct {
		args []string
		want string // numbers of the letters
	}{
		{[]string{"--code", "bad_time,bad_target"}, "2 3"},
		{[]string{"--code", "bad_time", "--code", "bad_target"}, "2 3"},
		{[]string{"--target", "orders.*"}, "1 2"},
		{[]string{"--id", all[0].ID}, "1"},
		{[]string{"--id", "3,1"}, "1 3"},
		{[]string{"--since", "1h"}, "1 2 3"},
		{[]string{"--until", "1h"}, ""},
		{[]string{"--until", text.Moment(all[1].Since)}, "1"},
		{[]string{"--since", text.Moment(all[1].Since), "--limit", "1"}, "2"},
	} {
		var got []string
		for _, l := range decodeLines[letterView](t, o.must(append([]string{"dead", "ls", "--json"}, test.args...)...)) {
			got = append(got, string(rune('0'+l.Number)))
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%q: got %q, want %q", test.args, got, test.want)
		}
	}
}

// wantDeadLimits lists fewer than the three letters, and checks that the output has the total.
func (o *testServer) wantDeadLimits() {
	t := o.t
	t.Helper()
	if _, errs, _ := o.run("dead", "ls", "--limit", "2"); !strings.Contains(errs, "2 of 3 dead letters") {
		t.Errorf("a limit: got %q on stderr", errs)
	}
	_, errs, _ := o.run("dead", "ls", "--limit", "1", "--target", "orders.>")
	if !strings.Contains(errs, "1 of 2 dead letters") {
		t.Errorf("a limit of a filter: got %q on stderr", errs)
	}
	if _, errs, _ := o.run("dead", "ls", "--limit", "3"); errs != "3 dead letters\n" {
		t.Errorf("a limit above the number: got %q on stderr", errs)
	}
	if _, errs, _ := o.run("dead", "ls", "--limit", "3", "--json"); errs != "" {
		t.Errorf("all as JSON: got %q on stderr", errs)
	}
	if got, want := o.must("dead", "ls", "--code", "expired"), "no matching dead letters\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A message in the stream that is not a dead letter is shown as far as it can be read. It cannot control the terminal.
func TestDeadListForeign(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	if got, want := o.must("dead", "ls"), "no dead letters\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	msg := nats.NewMsg("delaydead.undelivered.or\x1b[31mders")
	msg.Header = nats.Header{"Status": {"409"}, "Description": {"Consumer Deleted"}, "X": {"\x1b[31m"}}
	if _, err := o.js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"dead", "ls"}, {"dead", "show", "1"}} {
		if out := o.must(args...); !strings.Contains(out, "Delay-") {
			t.Errorf("%q: the reason why it is unreadable is missing:\n%s", args, out)
		}
	}
	s := o.summary(1, "resend", "--all", "--now")
	want := `[{"did":"left","letters":1,"why":"no broker of this version can have written its headers: ` +
		`see delaybroker dead show","number":1}]`
	if got := s.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o.summary(0, "rm", "--all")
	if got := o.messageCount("DELAY_DEAD"); got != 0 {
		t.Errorf("%d letters remain, want none", got)
	}
}

func TestDeadWords(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", "127.0.0.1:1") // no request is sent
	for _, test := range []struct {
		parts []string
		args  []string
	}{
		{[]string{"--all"}, []string{"dead", "rm"}},
		{[]string{"--all"}, []string{"dead", "resend", "--dry-run"}},
		{[]string{"--all excludes"}, []string{"dead", "rm", "--all", "--code", "expired"}},
		{[]string{"lost", "undelivered"}, []string{"dead", "ls", "--code", "lost"}},
		{[]string{"orders..x"}, []string{"dead", "ls", "--target", "orders..x"}},
		{[]string{"--since", "yesterday"}, []string{"dead", "ls", "--since", "yesterday"}},
		{[]string{"--until"}, []string{"dead", "ls", "--until", "2026-11-20T10:00:00"}},
		{[]string{"--since 1h is not before --until 2h"}, []string{"dead", "ls", "--since", "1h", "--until", "2h"}},
		{[]string{"--by", "code, target, reason"}, []string{"dead", "ls", "--by", "codes"}},
		{[]string{"<stream>-<sequence>"}, []string{"dead", "ls", "--id", "order-42"}},
		{[]string{"--limit"}, []string{"dead", "ls", "--limit", "-1"}},
		{[]string{"show"}, []string{"dead", "show"}},
		{[]string{"takes no arguments", "lst"}, []string{"dead", "lst"}},
	} {
		wantCommandError(t, 2, test.parts, test.args...)
	}
	if out := mustRunCommand(t, "", "dead"); !strings.Contains(out, "resend") {
		t.Errorf("dead alone: got %q, want help", out)
	}
}

func TestDeadWithoutStreams(t *testing.T) {
	newTestServer(t, server.Options{})
	wantCommandError(t, 1, []string{"DELAY_DEAD"}, "dead", "ls")
}

func TestDeadResend(t *testing.T) {
	o := newTestServer(t, server.Options{})
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
	eventually(t, "three deliveries", func() bool { return o.messageCount("ORDERS") == 3 })
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
		t.Errorf("the remaining letters are %+v, want only the one that was not selected", left)
	}
	if got := o.summary(1, "resend", "--id", "1"); len(got.Outcomes) != 0 {
		t.Errorf("a removed letter: got %s", got)
	}
	wantCommandError(t, 2, []string{"--to"}, "dead", "resend", "--all", "--to", "$SYS.x")
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
	if got := o.summary(1, "resend", "--all").String(); !strings.Contains(got, "--drop-expiry") {
		t.Errorf("got %s", got)
	}
	o.createOrders()
	o.summary(0, "resend", "--all", "--drop-expiry")
	eventually(t, "delivery", func() bool { return o.messageCount("ORDERS") == 1 })
	if got := o.messageCount("DELAY_DEAD"); got != 0 {
		t.Errorf("%d letters, want none, since it did not expire again", got)
	}
}

func TestDeadRemove(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.expire", "delayin.soon.orders.expire", "delayin.1ms.payments.x")
	if got, want := o.summary(0, "rm", "--all", "--dry-run").String(), `[{"did":"removed","letters":3}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := o.messageCount("DELAY_DEAD"); got != 3 {
		t.Errorf("%d letters after a dry run, want 3", got)
	}
	out := o.must("dead", "rm", "--target", "orders.>")
	if !strings.Contains(out, "removed") || !strings.Contains(out, "2") {
		t.Errorf("got\n%s", out)
	}
	left := decodeLines[letterView](t, o.must("dead", "ls", "--json"))
	if len(left) != 1 || left[0].Target != "payments.x" {
		t.Errorf("the remaining letters are %+v", left)
	}
}

// An interrupted run finishes the letters that it has begun, begins no other, and reports the finished ones.
func TestDeadInterrupted(t *testing.T) {
	o := newTestServer(t, server.Options{})
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
	if got, want := o.messageCount("DELAY_DEAD"), uint64(letters-s.Outcomes[0].Letters); got != want {
		t.Errorf("%d letters remain, want %d as in the output", got, want)
	}
}

// The first failure ends a run. The run reports the finished letters.
func TestDeadFails(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.a")
	if err := o.js.DeleteStream(t.Context(), "DELAY_RETRY_1s"); err != nil {
		t.Fatal(err)
	}
	wantCommandError(t, 1, []string{"dead letter 1", "nothing listens on delaysys.retry.1s.orders.a"},
		"dead", "resend", "--all")
	if got := o.messageCount("DELAY_DEAD"); got != 1 {
		t.Errorf("%d letters, want 1: the letter is kept", got)
	}
}

// The error names a missing permission. These permissions are enough for reading.
func TestDeadRefused(t *testing.T) {
	o := newTestServer(t, server.Options{NoAuthUser: "all", Users: []*server.User{
		{Username: "all", Password: "a"},
		{Username: "reader", Password: "r", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{
				"$JS.API.STREAM.LIST", // the secrets, which verify the seal of a letter
				"$JS.API.STREAM.INFO.DELAY_DEAD",
				"$JS.API.STREAM.MSG.GET.DELAY_DEAD", // shows whether a letter still exists
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
		wantCommandError(t, 1, []string{test.subject, "delaybroker doctor"}, "dead", test.verb, "--all")
		if took := time.Since(started); took > jsapi.Timeout {
			t.Errorf("%s: the refusal was reported only after %s, like a missing answer", test.verb, took)
		}
	}
	if got := o.messageCount("DELAY_DEAD"); got != 1 {
		t.Errorf("%d letters, want 1: the letter is kept", got)
	}
}

// createOrders creates a target: a stream for orders.>.
func (o *testServer) createOrders() {
	o.t.Helper()
	cfg := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}
	if _, err := o.js.CreateStream(o.t.Context(), cfg); err != nil {
		o.t.Fatal(err)
	}
}

// deadLetter stores a dead letter as a broker would.
func (o *testServer) deadLetter(code, target, reason string) {
	o.t.Helper()
	o.lettersStored++
	letter := nats.NewMsg("delaydead." + code + "." + target)
	for name, value := range map[string]string{
		message.HeaderID:        fmt.Sprintf("DELAY_5s-%d-1", o.lettersStored),
		message.HeaderDue:       "2026-01-01T00:00:00Z",
		message.HeaderAccepted:  "2026-01-01T00:00:00Z",
		message.HeaderErrorCode: code,
		message.HeaderError:     reason,
	} {
		letter.Header.Set(name, value)
	}
	if _, err := o.js.PublishMsgAsync(letter); err != nil {
		o.t.Fatal(err)
	}
	<-o.js.PublishAsyncComplete()
}

// The command counts 50,000 letters of five kinds within seconds.
func TestDeadCount(t *testing.T) {
	natstest.Long(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	o.must("provision")
	const letters = 50_000
	kinds := []struct{ code, target, reason string }{
		{"undelivered", "orders.expire", "refused %d times: nobody listens"},
		{"undelivered", "orders.expire", "refused %d times: the stream is full"},
		{"undelivered", "mail.send", "refused %d times: nobody listens"},
		{"expired", "mail.send", "expired at %d"},
		{"too_far", "mail.send", "due %d is too far"},
	}
	for n := range letters {
		k := kinds[n%len(kinds)]
		if n%100 == 0 {
			k = kinds[0]
		}
		m := nats.NewMsg("delaydead." + k.code + "." + k.target)
		m.Header = nats.Header{
			message.HeaderErrorCode: {k.code},
			message.HeaderError:     {fmt.Sprintf(k.reason, n)},
			message.HeaderID:        {fmt.Sprintf("DELAY_5s-%d-1", n+1)},
			message.HeaderDue:       {"2026-01-01T00:00:00Z"},
			message.HeaderAccepted:  {"2026-01-01T00:00:00Z"},
		}
		m.Data = make([]byte, 500)
		if _, err := o.js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	<-o.js.PublishAsyncComplete()
	began := time.Now()
	c := decode[inspect.LetterCount](t, o.must("dead", "ls", "--by", "code,target,reason", "--json"))
	t.Logf("it took %s", time.Since(began))
	if c.Letters != letters || len(c.Groups) != len(kinds) {
		t.Fatalf("got %d letters in %d groups, want %d in %d", c.Letters, len(c.Groups), letters, len(kinds))
	}
	sum := 0
	for _, g := range c.Groups {
		sum += g.Letters
	}
	if first := c.Groups[0]; sum != letters || first.Code != "undelivered" || first.Target != "orders.expire" ||
		first.Reason != "refused # times: nobody listens" || first.Letters != 10_000 {
		t.Errorf("got %+v first, %d in all", first, sum)
	}
	out, errs, err := o.run("dead", "ls", "--by", "target")
	if err != nil || !strings.Contains(errs, "50000 dead letters in 2 groups") ||
		strings.Contains(out, "REASON") || strings.Count(out, "\n") != 3 {
		t.Errorf("got %v\n%s%s", err, out, errs)
	}
	_, errs, err = o.run("dead", "ls", "--limit", "10")
	if err != nil || !strings.Contains(errs, "10 of 50000 dead letters") {
		t.Errorf("got %v and %q, want the total", err, errs)
	}
}
