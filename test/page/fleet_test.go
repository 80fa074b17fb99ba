package page_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/web/page"
	"delaybroker/test/natstest"
)

// TestThreeInstances: the pages of three instances have equal numbers, and the commands have the same. After a crash of
// the active instance, the numbers are still equal, and no value of the past has changed.
func TestThreeInstances(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	browser := startChromium(t)
	s := natstest.RunListening(t)
	c := &scene{t: t, nc: s.Connect()}
	c.js = s.JetStream(c.nc)
	env := []string{"NATS_URL=" + s.Server().ClientURL(), "DELAY_LEVELS=short"}
	brokers, tabs := make(map[string]*natstest.Process), make(map[string]*tab)
	for _, name := range []string{"a", "b", "c"} {
		address := natstest.FreeAddress(t)
		brokers[name] = natstest.StartBroker(t, append(env, "DELAY_HTTP_ADDR="+address, "DELAY_INSTANCE="+name)...)
		tabs[name] = open(t, browser, "http://"+address+"/", "#/", 1280, 900, "light")
	}
	command := func(args ...string) string {
		t.Helper()
		out, errs, code := natstest.RunCommand(t, env, args...)
		if code != 0 {
			t.Fatalf("%q ended with %d: %s", args, code, errs)
		}
		return out
	}
	command("pause", "held.>")
	for range 40 {
		c.publish("delay.1h.orders.later", "{}", nil)
	}
	for n := range 30 {
		c.timer(fmt.Sprintf("order-%d", n), "orders.remind", "2h")
	}
	for range 5 {
		c.publish("delay.1s.held.back", "{}", nil)
	}
	for range 4 {
		c.publish("delay.1s.nobody.listens", "{}", nats.Header{"Delay-Deliver": {"request"}})
	}
	for range 3 {
		c.publish("delayin.never.orders.typo", "{}", nil)
	}
	const pending, retrying, paused, dead, timers = 79, 4, 5, 3, 30 // pending includes the next two
	numbers := fmt.Sprintf(`["pending", "retrying", "paused", "dead"]
		.map((id) => document.querySelector("#n-" + id).textContent).join() === "%d,%d,%d,%d" &&
		[...document.querySelectorAll("#tabs .size")].map((n) => n.textContent).join() === "%d,%d,%d,%d"`,
		pending, retrying, paused, dead, pending, timers, retrying, dead)
	for _, b := range tabs {
		b.until(numbers)
	}
	wantNumbers := func(what string, want int, args ...string) { // a message between two lanes may count twice
		t.Helper()
		got := -1
		for end := time.Now().Add(natstest.Timeout); got != want && time.Now().Before(end); {
			got = sumOf(t, command(args...), what)
		}
		if got != want {
			t.Errorf("%q has %d, and the pages %d", args, got, want)
		}
	}
	wantNumbers("totals.pending", pending, "levels", "--json")
	wantNumbers("pending", pending, "ahead", "--json")
	wantNumbers("", dead, "dead", "ls", "--limit", "0", "--json")
	wantNumbers("waiting", paused, "pause", "--json")
	wantNumbers("waiting", retrying, "retrying", "--json")
	wantNumbers("", timers, "timers", "ls", "--limit", "0", "--json")
	past := func(b *tab) page.History {
		return value[page.History](b, `fetch("api/history?span=1h").then((r) => r.json())`)
	}
	known := func(h page.History) (n int) {
		for _, v := range h.Pending {
			if v != nil && *v == pending {
				n++
			}
		}
		return n
	}
	for _, b := range tabs { // each instance has read at least two steps of the active one
		for known(past(b)) < 2 {
			time.Sleep(time.Second)
		}
	}
	active := value[string](tabs["a"], `[...document.querySelectorAll("main tbody tr")]
		.find((r) => r.textContent.includes("active: works all lanes")).cells[0].textContent[0]`)
	tabs[active].allowRefusals()
	before := make(map[string]page.History)
	for name, b := range tabs {
		before[name] = past(b)
	}
	brokers[active].Crash()
	delete(tabs, active)
	for name, b := range tabs {
		b.until(`/took over from/.test(JSON.stringify(window.marks ?? "")) || fetch("api/history?span=1h")
			.then((r) => r.json()).then((h) => { window.marks = h.marks; }) && false`)
		b.until(numbers)
		after := past(b)
		for i, v := range before[name].Pending {
			at := before[name].From + int64(i*before[name].Step)
			n := int(at-after.From) / after.Step
			if v == nil || n < 0 || n >= len(after.Pending) {
				continue
			}
			if after.Pending[n] == nil || *after.Pending[n] != *v {
				t.Errorf("%s: after the crash, the pending messages at %d have changed from %v", name, at, *v)
			}
		}
	}
}

// sumOf returns the sum of a field of all lines of JSON, or without a field the number of lines.
func sumOf(t *testing.T, lines, field string) (sum int) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var v any
		natstest.NoError(t, json.Unmarshal([]byte(line), &v))
		if field == "" {
			sum++
			continue
		}
		for name := range strings.SplitSeq(field, ".") {
			object, _ := v.(map[string]any)
			v = object[name]
		}
		n, _ := v.(float64)
		sum += int(n)
	}
	return sum
}
