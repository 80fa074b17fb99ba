package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// TestAheadOutput checks that the output has a line for each hour, the numbers before and after, and the accuracy.
func TestAheadOutput(t *testing.T) {
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "1s,1h,2h,2d")
	o.must("provision")
	const exact = "not included: messages published later, refusals, waits for a rate, expiries\n"
	out, errs, err := o.run("ahead", "--target", "shop.>")
	if err != nil || out != "no message is pending for shop.>\n" || !strings.HasSuffix(errs, exact) {
		t.Errorf("got %v, %q and %q", err, out, errs)
	}
	for subject, n := range map[string]int{
		"delay.1h.shop.a": 3, "delay.2d.shop.b": 2, "delay.2h.mill.c": 4, "delayin.soon.shop.d": 1,
	} {
		for range n {
			o.publish(subject, "")
		}
	}
	out, errs, err = o.run("ahead", "--for", "4h")
	natstest.NoError(t, err)
	wantParts(t, out, "DUE", "MESSAGES", "3", "4", "later", "unreadable", strings.Repeat("█", 40))
	if strings.Contains(out, "±") {
		t.Errorf("an exact forecast shows an error margin:\n%s", out)
	}
	if want := "10 messages pending, exactly\n"; !strings.HasPrefix(errs, want) ||
		!strings.Contains(errs, "lanes without a reader") {
		t.Errorf("got %q on stderr, want %q and the lanes without a reader", errs, want)
	}
	if strings.Contains(out, "Z  0 ") || !strings.Contains(out, "more hours without a due message") {
		t.Errorf("want no row for an hour without a due message:\n%s", out)
	}
	f := decode[inspect.Forecast](t, o.must("ahead", "--json", "--for", "20h", "--by", "minute"))
	if len(f.Buckets) < 1200 || f.Pending != 10 || f.Later.Messages != 2 || f.Unreadable.Messages != 1 || !f.Exact {
		t.Errorf("as JSON: got %+v", f)
	}
	out = o.must("ahead", "--for", "20h", "--by", "minute")
	if lines := strings.Count(out, "\n"); lines > 12 || !strings.Contains(out, "more minutes without a due message") {
		t.Errorf("%d lines, want no line for a minute without a due message:\n%s", lines, out)
	}
	const many = 5000
	for range many {
		natstest.NoError(t, o.nc.Publish("delay.2h.mill.c", nil))
	}
	eventually(t, "room for all", func() bool { return o.messageCount("DELAY_2h") == many+4 })
	out, errs, err = o.run("ahead", "--most", "1000")
	const how = "5010 messages pending: 6 read, 5004 counted by the order of their level; " +
		"a sample of 2000 represents 5004\n"
	if err != nil || !strings.Contains(out, "±") || !strings.Contains(out, " 5004 ") || !strings.HasPrefix(errs, how) {
		t.Errorf("sampled: got %v and %q on stderr\n%s", err, errs, out)
	}
}

func TestAheadUsage(t *testing.T) {
	newTestServer(t, server.Options{})
	for args, part := range map[string]string{
		"--for soon":               `"soon" for "--for"`,
		"--for 0s":                 "want more than 0, and at most 1d for buckets of one minute",
		"--for 25h --by minute":    "at most 1d for buckets of one minute",
		"--for 61d":                "at most 60d for buckets of one hour",
		"--by day":                 `"day" for "--by" flag: want minute, hour`,
		"--target a..b":            `"a..b" for "--target"`,
		"--for 24h --by hour what": "takes no arguments",
	} {
		wantCommandError(t, 2, []string{part}, append([]string{"ahead"}, strings.Fields(args)...)...)
	}
}
