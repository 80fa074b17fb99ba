package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/publisher"
	"delaybroker/test/natstest"
)

func TestPub(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	startBroker(t)
	nc, _ := connectSettings(t)
	sub := subscribe(t, nc, "orders.>")

	out := mustRunCommand(t, "", "pub", "orders.expire", "from the line", "--in", "1s",
		"-H", "x-Mixed: a: b", "-H", "x-Mixed:c")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %q, want a header and a row", out)
	}
	m := wantMessage(t, sub, "from the line")
	row := []string{m.Header.Get("Delay-Id"), "DELAY_1s", m.Header.Get("Delay-Due")}
	if got, want := strings.Fields(lines[1]), row; !slices.Equal(got, want) {
		t.Errorf("row: got %q, want %q as delivered", got, want)
	}
	if got, want := m.Header["x-Mixed"], []string{"a: b", "c"}; !slices.Equal(got, want) {
		t.Errorf("header: got %q, want %q", got, want)
	}

	at := time.Now().Add(2 * time.Second).UTC().Truncate(time.Microsecond)
	mustRunCommand(t, "from stdin", "pub", "orders.expire", "-", "--at", at.Format(time.RFC3339Nano))
	m = wantMessage(t, sub, "from stdin")
	due, err := time.Parse(time.RFC3339Nano, m.Header.Get("Delay-Due"))
	if err != nil || due.Before(at) || due.Sub(at) >= time.Millisecond {
		t.Errorf("due: got %s (%v), want %s rounded up to a millisecond", due, err, at)
	}
	mustRunCommand(t, "piped", "pub", "orders.expire", "--level", "1s")
	wantMessage(t, sub, "piped")
}

func TestPubJSON(t *testing.T) {
	startBroker(t)
	before := time.Now()
	out := mustRunCommand(t, "", "pub", "orders.expire", "x", "--in", "5s", "--count", "3", "--json",
		"-H", "Nats-Msg-Id: one")
	all := decodeLines[publisher.Published](t, out)
	if len(all) != 3 {
		t.Fatalf("got %d lines, want 3", len(all))
	}
	for i, m := range all {
		if got, want := m.Duplicate, i > 0; got != want {
			t.Errorf("duplicate %d: got %t, want %t", i, got, want)
		}
		id, err := message.ParseID(m.ID)
		if err != nil || id.Stream != "DELAY_5s" || id.Sequence != 1 ||
			m.Stream != id.Stream || m.Sequence != 1 || m.Subject != "delay.5s.orders.expire" {
			t.Errorf("got %+v (%v), want the first of DELAY_5s", m, err)
		}
		if got, want := m.Due, id.At.Add(5*time.Second); !got.Equal(want) || m.Due.Before(before.Add(5*time.Second)) {
			t.Errorf("due: got %s, want %s", got, want)
		}
	}
}

func TestPubRefuses(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	startBroker(t)
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"pub", 2, "pub TARGET [BODY]"},
		{"pub a b c --in 1s", 2, "pub TARGET [BODY]"},
		{"pub a b", 2, "one of --in, --at and --level"},
		{"pub a b --in 1s --level 1s", 2, "one of --in, --at and --level"},
		{"pub a b --in 1s --count 0", 2, "--count"},
		{"pub a b --in 1.5s", 2, "--in"},
		{"pub a b --in 1s -H nothing", 2, "Key: value"},
		{"pub a.* b --in 1s", 2, "wildcard"},
		{"pub delay.1s.a b --in 1s", 2, "delays do not nest"},
		{"pub a b --in 1s -H Delay-Untill:5", 2, "Delay-Untill"},
		{"pub a b --level 7777s", 1, "no stream takes delay.7777s.a"},
	} {
		wantCommandError(t, test.code, []string{test.want}, strings.Fields(test.args)...)
	}
	t.Setenv("DELAY_PREFIX", "later")
	wantCommandError(t, 1, []string{"no stream takes later.1s.a", `"later"`}, "pub", "a", "b", "--in", "1s")
}

// A tenant may only publish delays to its own targets.
func TestPubPermissions(t *testing.T) {
	s := startServer(t, server.Options{Port: server.RANDOM_PORT, Users: []*server.User{
		{Username: "broker", Password: "b"},
		{Username: "orders", Password: "o", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"delay.*.orders.>"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"orders.>", "_INBOX.>"}},
		}},
	}})
	externalEnv(t, s.ClientURL())
	t.Setenv("DELAY_PROVISION", "create")
	login(t, "broker", "b")
	r := startReady(t)
	defer r.stop(t)

	login(t, "orders", "o")
	wantCommandError(t, 1, []string{"publish to delay.1s.billing.x", "Permissions Violation"},
		"pub", "billing.x", "y", "--in", "1s")
	wantCommandError(t, 1, []string{"subscribe to billing.>", "Permissions Violation"}, "sub", "billing.>")

	printed := mustRunCommand(t, "", "pub", "orders.x", "y", "--in", "1s", "--count", "2", "--json")
	got := decodeLines[publisher.Published](t, printed)
	for i, m := range got {
		if m.ID != "" || !m.Estimated || m.Sequence != uint64(i+1) || time.Until(m.Due) > time.Second {
			t.Errorf("got %+v, want no id and an estimate, since the user may not request the time", m)
		}
	}
	out := mustRunCommand(t, "", "pub", "orders.x", "y", "--in", "1s")
	wantParts(t, out, "DELAY_1s-3", "about")
	t.Setenv("NATS_PASSWORD", "wr0ng")
	wantCommandError(t, 1, []string{"connect to NATS at nats://127.0.0.1"}, "pub", "orders.x", "y", "--in", "1s")
}

// Many messages are published concurrently. Each is stored once, and shown once.
func TestPubCount(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	const count = 3000
	out, errs, err := o.run("pub", "orders.x", "body", "--level", "5s", "--count", fmt.Sprint(count))
	row := fmt.Sprintf("\n%d      DELAY_5s  1 to %d  ", count, count)
	if err != nil || strings.Count(out, "\n") != 2 || !strings.Contains(out, row) {
		t.Errorf("got %v, want one row %q:\n%s%s", err, row, out, errs)
	}
	if got := o.messageCount("DELAY_5s"); got != count {
		t.Errorf("%d messages are stored, want %d", got, count)
	}
	sequences := make(map[uint64]bool)
	out = o.must("pub", "orders.x", "body", "--level", "5s", "--count", fmt.Sprint(count), "--json")
	for _, m := range decodeLines[publisher.Published](t, out) {
		sequences[m.Sequence] = true
	}
	if len(sequences) != count || !sequences[2*count] {
		t.Errorf("%d are shown, want %d up to sequence %d", len(sequences), count, 2*count)
	}
	out = o.must("pub", "orders.x", "body", "--level", "5s", "--count", "3", "-H", "Nats-Msg-Id: one")
	wantParts(t, out, "STORED BEFORE", "\n3         2 ")
	// The first failure ends the command, and the stored messages are shown.
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 })
	out, _, err = o.run("pub", "orders.x", "body", "--level", "1s", "--count", "100")
	if err == nil || !strings.Contains(err.Error(), "maximum messages exceeded") || !strings.Contains(out, "  1 to 10  ") {
		t.Errorf("got %v and\n%s, want the refusal and the ten stored messages", err, out)
	}
}

func TestPubInThePast(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.serve()
	_, errs, err := o.run("pub", "orders.x", "body", "--at", "2020-01-01T00:00:00Z")
	if want := "--at 2020-01-01T00:00:00Z is "; err != nil || !strings.Contains(errs, want) ||
		!strings.Contains(errs, "ago: the message is delivered immediately") {
		t.Errorf("got %v and %q, want %q", err, errs, want)
	}
	future := time.Now().Add(time.Hour).Format(time.RFC3339)
	if _, errs, err := o.run("pub", "orders.x", "body", "--at", future); err != nil || errs != "" {
		t.Errorf("in an hour: got %v and %q, want no warning", err, errs)
	}
}

// TestPubIsRefused: the error has the reason of the stream once. If the server refuses a Nats-TTL, the error names the
// header to use.
func TestPubIsRefused(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	wantCommandError(t, 1, []string{"publish to delay.5s.orders.x: Nats-TTL is reserved for the server: use Delay-TTL"},
		"pub", "orders.x", "body", "--level", "5s", "-H", "Nats-TTL: 1s")
	wantCommandError(t, 1, []string{"publish to delay.5s.orders.x: wrong last sequence: 0 (10071)"},
		"pub", "orders.x", "body", "--level", "5s", "-H", "Nats-Expected-Last-Sequence: 7")
}

func TestDeliveryTimeSubject(t *testing.T) {
	names, err := message.NewNames("later")
	natstest.NoError(t, err)
	at := func(text string) time.Time {
		t.Helper()
		parsed, err := time.Parse(time.RFC3339, text)
		natstest.NoError(t, err)
		return parsed
	}
	for _, test := range []struct {
		when deliveryTime
		want string
	}{
		{deliveryTime{level: "30m"}, "later.30m.a.b"},
		{deliveryTime{in: "30m"}, "later.30m.a.b"},
		{deliveryTime{in: "17m"}, "later.17m.a.b"},
		{deliveryTime{in: "0s"}, "later.0s.a.b"},
		{deliveryTime{in: "7777s"}, "laterin.7777s.a.b"},
		{deliveryTime{in: "1h30m"}, "laterin.1h30m.a.b"},
		{deliveryTime{at: at("2026-12-24T19:00:00+01:00")}, "laterat.2026-12-24T18:00:00Z.a.b"},
		{deliveryTime{at: at("2026-12-24T18:00:00.000Z")}, "laterat.2026-12-24T18:00:00Z.a.b"},
		{deliveryTime{at: at("2026-12-24T18:00:00.250Z")}, "laterat.1798135200250.a.b"},
		{deliveryTime{at: at("2026-12-24T18:00:00.250000001Z")}, "laterat.1798135200251.a.b"},
		{deliveryTime{at: at("2026-12-24T18:00:00.999999999Z")}, "laterat.2026-12-24T18:00:01Z.a.b"},
		// The number 1500 would be parsed as seconds.
		{deliveryTime{at: at("1970-01-01T00:00:01.500Z")}, "laterat.1970-01-01T00:00:02Z.a.b"},
	} {
		if got := test.when.subject(names, "a.b"); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.when, got, test.want)
		}
	}
	for _, bad := range []string{"--in=1.5s", "--in=soon", "--at=tomorrow", "--at=2026-12-24T18:00:00"} {
		wantCommandError(t, 2, []string{bad[:4]}, "pub", "a.b", "body", bad)
	}
}
