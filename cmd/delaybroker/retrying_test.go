package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// storeRefused stores a message in a retry lane. It was refused once, and its next attempt is in an hour.
func (o *testServer) storeRefused(n uint64, level, target, why string) string {
	o.t.Helper()
	now := time.Now().UTC()
	id := message.ID{Stream: "DELAY_1s", Sequence: n + 1, At: now}.String()
	r := message.Request{ID: id, Accepted: now, Due: now, Hop: 2, AllowedRefusals: 20}
	r = r.WithRefusal(now, now.Add(time.Hour), why)
	m := nats.NewMsg("delaysys.retry." + level + "." + target)
	m.Header = nats.Header(r.HopHeader())
	if _, err := o.js.PublishMsg(o.t.Context(), m); err != nil {
		o.t.Fatal(err)
	}
	return id
}

// TestRetryingOutput checks that the output has a line for each target, and the totals. Untrusted text has no control
// characters.
func TestRetryingOutput(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	if out := o.must("retrying"); out != "no message is in the retry lanes\n" {
		t.Errorf("got %q", out)
	}
	if r := decode[inspect.RetryReport](t, o.must("retrying", "--json")); r.Time.IsZero() || r.Waiting != 0 {
		t.Errorf("as JSON: got %+v, want an empty list", r)
	}
	var ids []string
	for n := range 3 {
		ids = append(ids, o.storeRefused(uint64(n), "30s", "shop.mail", "no \x1b[2J stock"))
	}
	o.storeRefused(3, "5s", "shop.sms", "nobody listens")

	out, errs, err := o.run("retrying")
	natstest.NoError(t, err)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "MESSAGES  TARGET") {
		t.Fatalf("got\n%s", out)
	}
	wantRows(t, rows[1:], [][]string{
		{"3", "shop.mail", "refused", "1 of 20", "59m", "no  [2J stock", ids[0]},
		{"1", "shop.sms", "refused", "1 of 20", "59m", "nobody listens"},
	})
	if want := "4 messages in 2 lines: 4 refused\n"; errs != want {
		t.Errorf("got %q on stderr, want %q", errs, want)
	}

	for _, test := range []struct{ args, says, shows string }{
		{"--limit 1", "4 messages in 2 lines (1 shown; --limit 0 shows all): 4 refused\n", "shop.mail"},
		{"--target *.sms", "1 message in 1 line: 1 refused; the retry lanes have 4\n", "shop.sms"},
		{"--target nobody", "0 messages in 0 lines; the retry lanes have 4\n", ""},
		{"--most 2", "2 messages in 2 lines: 2 refused; the retry lanes have 4\n" +
			"there may be more: delaybroker retrying --from DELAY_RETRY_30s-2 --most 2\n", "shop.mail"},
		{"--most 1 --target shop.>", "1 message in 1 line: 1 refused; the retry lanes have 4\n" +
			"there may be more: delaybroker retrying --target 'shop.>' --from DELAY_RETRY_30s-1 --most 1\n", "shop.sms"},
		{"--from DELAY_RETRY_30s-2", "2 messages in 1 line: 2 refused; the retry lanes have 4\n", "shop.mail"},
	} {
		out, errs, err := o.run(append([]string{"retrying"}, strings.Fields(test.args)...)...)
		if err != nil || errs != test.says || !strings.Contains(out, test.shows) {
			t.Errorf("%s: %v\nsaid  %swant  %s%s", test.args, err, errs, test.says, out)
		}
	}
}

func TestRetryingUsage(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	for args, part := range map[string]string{
		"--most 0":              `"--most" flag: want 1 or more`,
		"--limit -1":            "want 0 or more",
		"--target a..b":         `"a..b" for "--target"`,
		"--from DELAY_RETRY_5s": "want a stream and a sequence",
		"--from DELAY_5s-1": "the retry lane does not exist, or its leader does not answer: DELAY_5s; " +
			"the lanes that answered are DELAY_RETRY_1s",
		"x": "takes no arguments",

		"--from DELAY_RETRY_5s-1-1795232225716716581": "want a stream and a sequence",
	} {
		wantCommandError(t, 2, []string{part}, append([]string{"retrying"}, strings.Fields(args)...)...)
	}
}

// TestRetryingWhileServing: the command reads messages that a broker has stored.
func TestRetryingWhileServing(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_RETRY", "30s")
	t.Setenv("DELAY_DELIVER", "stream") // the target has no stream, so it refuses every delivery
	o.serve()
	o.publish("delayin.1ms.orders.expire", "")
	var g inspect.RetryGroup
	var r inspect.RetryReport
	eventually(t, "retry", func() bool {
		row, end, ok := strings.Cut(o.must("retrying", "--json"), "\n")
		if ok && end != "" {
			g, r = decode[inspect.RetryGroup](t, row), decode[inspect.RetryReport](t, end)
		}
		return r.Messages == 1
	})
	wait := g.Next.Sub(r.Time)
	got := fmt.Sprint(g.Target, " ", g.State, " ", g.Attempts, " of ", g.Allowed, ": ", g.Reason)
	const want = "orders.expire refused 1 of 20: nobody listens on the subject (503)"
	if got != want || wait <= 0 || wait > 30*time.Second {
		t.Errorf("got %s in %s, want %s within 30s", got, wait, want)
	}
}
