package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
	"delaybroker/broker/text"
	"delaybroker/test/natstest"
)

func TestDeadListAndShow(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.letters("delayin.1ms.orders.expire", "delayin.soon.orders.expire", "delayin.1ms.$SYS.x")
	out := o.must("dead", "ls")
	wantParts(t, out, "NUMBER", "undelivered", "orders.expire", "bad_time", "bad_target", "DELAY_INTAKE-1-")
	all := decodeLines[operation.Letter](t, o.must("dead", "ls", "--json"))
	if len(all) != 3 {
		t.Fatalf("%d letters, want 3", len(all))
	}
	first := all[0]
	if first.Number != 1 || first.Target != "orders.expire" || first.Subject != "delayin.1ms.orders.expire" ||
		first.Size != len("body of delayin.1ms.orders.expire") || first.Payload != nil ||
		first.Due.IsZero() || first.Unreadable != "" {
		t.Errorf("got %+v", first)
	}
	o.wantDeadFilters(all)
	o.wantDeadLimits()

	out = o.must("dead", "show", first.ID)
	wantParts(t, out,
		first.ID, "undelivered", "delayin.1ms.orders.expire",
		"body, 33 bytes\nbody of delayin.1ms")
	shown := decode[operation.Letter](t, o.must("dead", "show", "3", "--json"))
	got, want := string(shown.Payload), "body of delayin.1ms.$SYS.x"
	if got != want || shown.Code != "bad_target" || shown.Target != "" {
		t.Errorf("got %+v with %q", shown, got)
	}
	wantCommandError(t, 1, nil, "dead", "show", "99")
}

// wantDeadFilters selects among three letters by each flag.
func (o *testServer) wantDeadFilters(all []operation.Letter) {
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
		out := o.must(append([]string{"dead", "ls", "--json"}, test.args...)...)
		for _, l := range decodeLines[operation.Letter](t, out) {
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
	wantParts(t, errs, "1 of 2 dead letters")
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
	want := `[{"outcome":"left","count":1,"why":"no broker of this version can have written its headers: ` +
		`see delaybroker dead show","example":"1"}]`
	if got := outcomesText(s); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o.summary(0, "rm", "--all")
	if got := o.messageCount("DELAY_DEAD"); got != 0 {
		t.Errorf("%d letters remain, want none", got)
	}
}

// The command counts 50,000 letters of five kinds within seconds.
func TestDeadCount(t *testing.T) {
	natstest.SkipShort(t)
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
		m := newDeadLetter(n+1, k.code, k.target, fmt.Sprintf(k.reason, n))
		m.Data = make([]byte, 500)
		if _, err := o.js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	<-o.js.PublishAsyncComplete()
	began := time.Now()
	type line struct {
		inspect.LetterGroup
		Groups int `json:"groups"` // only in the last line, with the number of all letters
	}
	lines := decodeLines[line](t, o.must("dead", "ls", "--by", "code,target,reason", "--json"))
	t.Logf("it took %s", time.Since(began))
	groups, total := lines[:len(lines)-1], lines[len(lines)-1]
	if total.Letters != letters || total.Groups != len(kinds) || len(groups) != len(kinds) {
		t.Fatalf("got %+v and %d groups, want %d letters in %d", total, len(groups), letters, len(kinds))
	}
	sum := 0
	for _, g := range groups {
		sum += g.Letters
	}
	if first := groups[0]; sum != letters || first.Code != "undelivered" || first.Target != "orders.expire" ||
		first.Reason != "refused # times: nobody listens" || first.Letters != 10_000 {
		t.Errorf("got %+v first, %d in all", first, sum)
	}
	out, errs, err := o.run("dead", "ls", "--by", "target")
	if err != nil || !strings.Contains(errs, "50,000 dead letters in 2 groups") ||
		strings.Contains(out, "REASON") || strings.Count(out, "\n") != 3 {
		t.Errorf("got %v\n%s%s", err, out, errs)
	}
	_, errs, err = o.run("dead", "ls", "--limit", "10")
	if err != nil || !strings.Contains(errs, "10 of 50000 dead letters") {
		t.Errorf("got %v and %q, want the total", err, errs)
	}
}
