package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/operation"
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

// newDeadLetter returns the nth dead letter, with the headers that a broker writes, and without a seal.
func newDeadLetter(n int, code, target, reason string) *nats.Msg {
	letter := nats.NewMsg("delaydead." + code + "." + target)
	letter.Header = nats.Header{
		message.HeaderID:        {fmt.Sprintf("DELAY_5s-%d-1", n)},
		message.HeaderDue:       {"2026-01-01T00:00:00Z"},
		message.HeaderAccepted:  {"2026-01-01T00:00:00Z"},
		message.HeaderErrorCode: {code},
		message.HeaderError:     {reason},
	}
	return letter
}

// summary runs a command that resends or removes letters, and returns its summary.
func (o *testServer) summary(code int, args ...string) operation.LetterSummary {
	o.t.Helper()
	out, errs, err := o.run(append([]string{"dead", "--json"}, args...)...)
	if got := exitCode(err); got != code {
		o.t.Fatalf("%q: exit code %d (%v), want %d\n%s%s", args, got, err, code, out, errs)
	}
	return decode[operation.LetterSummary](o.t, out)
}

func outcomesText(s operation.LetterSummary) string {
	text, _ := json.Marshal(s.Outcomes)
	return string(text)
}

func TestDeadRemove(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.expire", "delayin.soon.orders.expire", "delayin.1ms.payments.x")
	dry := outcomesText(o.summary(0, "rm", "--all", "--dry-run"))
	if got, want := dry, `[{"outcome":"removed","count":3}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := o.messageCount("DELAY_DEAD"); got != 3 {
		t.Errorf("%d letters after a dry run, want 3", got)
	}
	out := o.must("dead", "rm", "--target", "orders.>")
	wantParts(t, out, "removed", "2")
	letters := decodeLines[operation.Letter](t, o.must("dead", "ls", "--json"))
	if len(letters) != 1 || letters[0].Target != "payments.x" {
		t.Errorf("the remaining letters are %+v", letters)
	}
}

// The error names a missing permission. The user has the permissions to read letters, and no others.
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
	login(t, "reader", "r")
	if got := len(decodeLines[operation.Letter](t, o.must("dead", "ls", "--json"))); got != 1 {
		t.Errorf("a reader sees %d letters, want 1", got)
	}
	wantParts(t, o.must("dead", "show", "1"), "body of")
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

func TestDeadWithoutStreams(t *testing.T) {
	newTestServer(t, server.Options{})
	wantCommandError(t, 1, []string{"DELAY_DEAD"}, "dead", "ls")
}

func TestDeadUsage(t *testing.T) {
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
		{[]string{"--since is not before --until"}, []string{"dead", "ls", "--since", "1h", "--until", "2h"}},
		{[]string{"--by", "code, target, reason, letter"}, []string{"dead", "ls", "--by", "codes"}},
		{[]string{"<stream>-<sequence>"}, []string{"dead", "ls", "--id", "order-42"}},
		{[]string{"--limit"}, []string{"dead", "ls", "--limit", "-1"}},
		{[]string{"show"}, []string{"dead", "show"}},
		{[]string{"unknown command", "lst", "ls?"}, []string{"dead", "lst"}},
	} {
		wantCommandError(t, 2, test.parts, test.args...)
	}
	wantParts(t, mustRunCommand(t, "", "dead"), "resend")
}

// Progress is not written to a pipe: the mail of a cron job has only the result.
func TestProgressNeedsTerminal(t *testing.T) {
	var errs bytes.Buffer
	tracker := progress{app: &app{Printer: terminal.Printer{Err: &errs}}}
	synctest.Test(t, func(*testing.T) {
		for n := range uint64(5) {
			tracker.update(n, 10)
			time.Sleep(time.Minute)
		}
	})
	if errs.Len() > 0 {
		t.Errorf("got %q, want nothing", &errs)
	}
}
