package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/test/natstest"
)

// letters runs a broker, and publishes one message that becomes a dead letter for each of these subjects, in this
// order.
func (o *operated) letters(subjects ...string) {
	o.t.Helper()
	o.t.Setenv("DELAY_ATTEMPTS", "1")
	o.t.Setenv("DELAY_DELIVER", "stream") // a target without a stream refuses
	o.serve()
	for i, subject := range subjects {
		o.publish(subject, "body of "+subject)
		eventually(o.t, "dead letter of "+subject, func() bool { return o.held("DELAY_DEAD") == uint64(i+1) })
	}
}

// held returns the number of messages in a stream.
func (o *operated) held(stream string) uint64 {
	o.t.Helper()
	s, err := o.js.Stream(o.t.Context(), stream)
	if err != nil {
		o.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// summary runs a verb that deals with letters, and returns its end.
func (o *operated) summary(code int, args ...string) letterSummary {
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
	o := operateOn(t, server.Options{})
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
	o.wantDeadChoices(all)
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
	wantVerbError(t, 1, nil, "dead", "show", "99")
}

// wantDeadChoices chooses among three letters by each flag.
func (o *operated) wantDeadChoices(all []letterView) {
	t := o.t
	t.Helper()
	for _, test := range []struct {
		args []string
		want string // numbers
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

// wantDeadLimits lists fewer than the three letters, and reads how many there are.
func (o *operated) wantDeadLimits() {
	t := o.t
	t.Helper()
	if _, errs, _ := o.run("dead", "ls", "--limit", "2"); !strings.Contains(errs, "2 of 3 dead letters") {
		t.Errorf("a limit: got %q on stderr", errs)
	}
	_, errs, _ := o.run("dead", "ls", "--limit", "1", "--target", "orders.>")
	if !strings.Contains(errs, "1 of 2 dead letters") {
		t.Errorf("a limit to a choice: got %q on stderr", errs)
	}
	if _, errs, _ := o.run("dead", "ls", "--limit", "3"); errs != "3 dead letters\n" {
		t.Errorf("a limit that is none: got %q on stderr", errs)
	}
	if _, errs, _ := o.run("dead", "ls", "--limit", "3", "--json"); errs != "" {
		t.Errorf("all as JSON: got %q on stderr", errs)
	}
	if got, want := o.must("dead", "ls", "--code", "expired"), "no matching dead letters\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A message that is no dead letter is shown as far as it can be read, and cannot control the terminal.
func TestDeadListForeign(t *testing.T) {
	o := operateOn(t, server.Options{})
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
			t.Errorf("%q: it does not say what is unreadable:\n%s", args, out)
		}
	}
	s := o.summary(1, "resend", "--all", "--now")
	want := `[{"did":"left","letters":1,"why":"no broker of this version can have written its headers: ` +
		`see delaybroker dead show","number":1}]`
	if got := s.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o.summary(0, "rm", "--all")
	if got := o.held("DELAY_DEAD"); got != 0 {
		t.Errorf("%d letters are left, want none", got)
	}
}

func TestDeadWords(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", "127.0.0.1:1") // nobody is asked
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
		wantVerbError(t, 2, test.parts, test.args...)
	}
	if out := mustRunVerb(t, "", "dead"); !strings.Contains(out, "resend") {
		t.Errorf("dead alone: got %q, want help", out)
	}
}

func TestDeadWithoutStreams(t *testing.T) {
	operateOn(t, server.Options{})
	wantVerbError(t, 1, []string{"DELAY_DEAD"}, "dead", "ls")
}

// createOrders adds a target to the server: a stream for orders.>.
func (o *operated) createOrders() {
	o.t.Helper()
	cfg := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}
	if _, err := o.js.CreateStream(o.t.Context(), cfg); err != nil {
		o.t.Fatal(err)
	}
}

// deadLetter stores a dead letter as a broker would.
func (o *operated) deadLetter(code, target, reason string) {
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

// 50,000 letters of five kinds are counted by kind, and soon.
func TestDeadCount(t *testing.T) {
	natstest.Long(t)
	if apart(t) {
		return
	}
	o := operateOn(t, server.Options{})
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
