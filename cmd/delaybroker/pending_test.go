package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// TestPendingOutput checks that the list has a line for each message, the earliest first, and the flags of the next
// page.
func TestPendingOutput(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "1s,1h,2h")
	o.must("provision")
	out, errs, err := o.run("pending", "ls")
	if err != nil || out != "no message matches\n" || errs != "0 messages, 0 headers read\n" {
		t.Errorf("nothing: got %v, %q and %q", err, out, errs)
	}
	for _, subject := range []string{"delay.2h.mill.c", "delay.1h.shop.a", "delayin.90m.shop.b", "delayin.soon.shop.d"} {
		o.publish(subject, "four")
	}
	refused := o.storeRefused(0, "30s", "shop.mail", "no stock")

	out, errs, err = o.run("pending", "ls")
	natstest.NoError(t, err)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if want := "5 messages, 5 headers read\n"; len(rows) != 6 || !strings.HasPrefix(rows[0], "DUE IN") || errs != want {
		t.Fatalf("got %q on stderr, want %q\n%s", errs, want, out)
	}
	wantRows(t, rows[1:], [][]string{
		{"dead: bad_time", "shop.d", "DELAY_INTAKE-2-", " 4  "},
		{"59m", "shop.a", "DELAY_1h-1-", "DELAY_1h ", " 4  ", "0"},
		{"59m", "shop.mail", refused, "DELAY_RETRY_30s", " 0  ", "1"},
		{"1h29m", "shop.b", "DELAY_INTAKE-1-"},
		{"1h59m", "mill.c", "DELAY_2h-1-"},
	})
	var paged []string
	command := "delaybroker pending ls --limit 2 --target shop.>"
	for command != "" {
		out, errs, err := o.run(strings.Fields(strings.ReplaceAll(command, "'", ""))[1:]...)
		natstest.NoError(t, err)
		paged = append(paged, strings.Split(strings.TrimSpace(out), "\n")[1:]...)
		_, command, _ = strings.Cut(strings.TrimSpace(errs), "there may be more: ")
	}
	if len(paged) != 4 || !strings.Contains(paged[3], "shop.b") {
		t.Errorf("in pages of two:\n%s", strings.Join(paged, "\n"))
	}
	const short = "0 messages, 1 header read\nthere may be more: delaybroker pending ls --most 2\n"
	if _, errs, _ := o.run("pending", "ls", "--most", "1"); errs != short {
		t.Errorf("one header: got %q on stderr", errs)
	}
	lines := decodeLines[map[string]any](t, o.must("pending", "ls", "--json", "--due-after", "1h20m"))
	if len(lines) != 3 || lines[0]["target"] != "shop.b" || lines[2]["more"] != false {
		t.Errorf("as JSON: got %v", lines)
	}
}

func TestPendingUsage(t *testing.T) {
	newTestServer(t, server.Options{})
	for args, part := range map[string]string{
		"ls --limit 0":        "want 1 to 100000",
		"ls --most 0":         `"--most" flag: want 1 or more`,
		"ls --target a..b":    `"a..b" for "--target"`,
		"ls --due-after soon": `"--due-after" flag: want a duration (10m)`,
		"ls --due-before 1":   "--due-before",
		"ls --cursor DELAY-1": `"--cursor" flag: invalid cursor: pass the cursor that a list printed`,
		"ls x":                "takes no arguments",
		"cancel x":            "unknown command",
	} {
		wantCommandError(t, 2, []string{part}, append([]string{"pending"}, strings.Fields(args)...)...)
	}
}

// TestPendingWhileServing: messages in a broker's memory are listed until they are delivered.
func TestPendingWhileServing(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "1s 2h") // for few hops: a message that changes lanes may not be counted
	o.serve()
	if _, err := o.nc.Subscribe("orders.*", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	o.publish("delay.2h.orders.expire", "")
	o.publish("delayin.300ms.orders.soon", "")
	eventually(t, "delivery", func() bool {
		out := o.must("pending", "ls", "--target", "orders.*")
		return strings.Contains(out, "orders.expire") && !strings.Contains(out, "orders.soon")
	})
	f := decode[inspect.Forecast](t, o.must("ahead", "--json", "--for", "3h"))
	if f.Pending != 1 || !f.Exact || f.UnreadLanes != 0 {
		t.Errorf("ahead: got %+v", f)
	}
	for _, b := range f.Buckets {
		due := f.Time.Add(2 * time.Hour)
		if in := !due.Add(-time.Minute).Before(b.From) && due.Before(b.To); in && b.Messages != 1 {
			t.Errorf("got %+v, want one message", b)
		}
	}
}
