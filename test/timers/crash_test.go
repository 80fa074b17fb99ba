package timers

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/harness/static"
	"delaybroker/test/natstest"
)

// A crash is a row of the table in the documentation of package timer, with the scenes in which the crash happens.
type crash struct {
	after, recovery string
	ways            []way
}

// A way is a scene: a client sets a timer, a broker crashes, and another broker starts. All times count from the set.
type way struct {
	name   string
	wait   time.Duration // the delay of the timer
	mute   string        // prefix of the API subjects of the requests that get no answer
	from   time.Duration // time until which these requests get an answer
	passes int64         // number of these requests after from that still get an answer
	until  time.Duration // time of the crash; if negative, the crash is before the set
	back   time.Duration // time of the start of the next broker
	// then, if set, is called at back, before that start.
	then   func(c *harness.Client, g uint64)
	change func(*broker.Config)
	expect []time.Duration // times at which the broker sends the message, which the target's stream stores once
}

const crashed = "delaytimer.k.orders.x"

func ownsAll(c *broker.Config) { c.Leaser = static.Leaser{} }

func fired(c *harness.Client, _ uint64) { c.Fire(crashed, "ghost") }

func firedAndPurged(c *harness.Client, g uint64) {
	fired(c, g)
	c.Purge("DELAY_10m")
	c.Purge("DELAY_1m")
}

func cancelled(c *harness.Client, g uint64) {
	if c.PublishIf(g, crashed, "", "Delay-Cancel", "x") == 0 {
		c.T.Error("a timer cannot be cancelled while no broker runs")
	}
}

// duplicateTimes has the times of a delivery and of its duplicate. The next broker waits until the instance that fired
// can no longer be delivering. The duplicate window of a stream is much longer.
var duplicateTimes = []time.Duration{900 * time.Millisecond, 9399 * time.Millisecond}

// crashes are the rows of the table, in its order.
var crashes = []crash{
	{after: "set stored, not read", recovery: "the active instance reads the set", ways: []way{
		{name: "due meanwhile", wait: 10 * time.Minute, until: -1, back: time.Hour, expect: []time.Duration{time.Hour}},
		{name: "due later", wait: 2 * time.Hour, until: -1, back: time.Hour, expect: []time.Duration{2 * time.Hour}},
		{name: "cancelled", wait: 2 * time.Hour, until: -1, then: cancelled, back: time.Hour},
	}},
	{after: "set read, marker not stored", recovery: "the next active instance reads the set again",
		ways: []way{
			{wait: 30 * time.Minute, until: 5 * time.Second, back: 10 * time.Minute, expect: []time.Duration{30 * time.Minute}},
		}},
	{after: "marker stored, cursor not", recovery: "a second marker is sent; it finds no timer", ways: []way{
		{wait: 30 * time.Minute, until: 5 * time.Minute, then: func(c *harness.Client, _ uint64) { forgetCursor(c) },
			back: 5 * time.Minute, expect: []time.Duration{30 * time.Minute}},
	}},
	{after: "firing stored, message not delivered", recovery: "the next active instance delivers",
		ways: []way{
			{name: "alone", wait: 10 * time.Minute, until: time.Minute, then: fired, back: 10 * time.Minute,
				expect: []time.Duration{10 * time.Minute}},
			{
				name:   "shared",
				change: func(c *broker.Config) { c.Leaser = harness.Together },
				wait:   10 * time.Minute,
				until:  time.Minute,
				then:   fired,
				back:   10 * time.Minute,
				expect: []time.Duration{10*time.Minute + 5*time.Second},
			},
		}},
	{after: "firing stored, and its marker is lost", recovery: "the sweep delivers", ways: []way{
		{wait: 10 * time.Minute, until: time.Minute, then: firedAndPurged, back: time.Hour,
			expect: []time.Duration{time.Hour}},
	}},
	{after: "message delivered, entries not removed", recovery: "delivered again under the same id, then removed",
		ways: []way{
			{name: "no entry", wait: 900 * time.Millisecond, mute: "STREAM.MSG.DELETE.DELAY_TIMERS",
				from: 899 * time.Millisecond, until: 1899 * time.Millisecond, back: 1899 * time.Millisecond,
				expect: duplicateTimes},
			{name: "the set alone", wait: 900 * time.Millisecond, mute: "STREAM.MSG.DELETE.DELAY_TIMERS", passes: 1,
				from: 899 * time.Millisecond, until: 1899 * time.Millisecond, back: 1899 * time.Millisecond,
				expect: duplicateTimes},
			{name: "no entry, apart", change: ownsAll, wait: 900 * time.Millisecond, mute: "STREAM.MSG.DELETE.DELAY_TIMERS",
				from: 899 * time.Millisecond, until: 1899 * time.Millisecond, back: 1899 * time.Millisecond,
				expect: duplicateTimes},
			{name: "the set alone, apart", change: ownsAll, wait: 900 * time.Millisecond,
				mute: "STREAM.MSG.DELETE.DELAY_TIMERS", passes: 1,
				from: 899 * time.Millisecond, until: 1899 * time.Millisecond, back: 1899 * time.Millisecond,
				expect: duplicateTimes},
		}},
	{after: "entries removed, marker not purged", recovery: "the marker finds no timer, and is dropped",
		ways: []way{
			{wait: 72 * time.Second, mute: "STREAM.PURGE.", until: 73 * time.Second, back: 73 * time.Second,
				expect: []time.Duration{72 * time.Second}},
		}},
	{after: "cancel stored", recovery: "the marker finds no timer, and is dropped", ways: []way{
		{name: "the cancel stands", change: func(c *broker.Config) { c.TimerHistory = 3 * time.Hour },
			wait: 10 * time.Minute, until: time.Minute, then: cancelled, back: time.Minute},
		{name: "the cancel is gone", wait: 10 * time.Minute, until: time.Minute, then: cancelled, back: time.Minute},
		{name: "its marker is overdue", wait: 10 * time.Minute, until: time.Minute, then: cancelled, back: time.Hour},
	}},
}

// TestTimerCrashes plays the crashes of the table in the documentation of package timer. Each timer is sent exactly at
// the expected times, and the stream keeps none of its entries.
func TestTimerCrashes(t *testing.T) {
	t.Parallel()
	for _, row := range crashes {
		for _, w := range row.ways {
			natstest.Subtest(t, strings.TrimSuffix(row.after+"/"+w.name, "/"), w.actOut)
		}
	}
}

// TestCrashesMatchDocument compares the crashes with the table in the documentation of package timer, line by
// line.
func TestCrashesMatchDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../broker/timer/doc.go")
	natstest.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "TestTimerCrashes tests each row.\n//\n")
	table, _, _ = strings.Cut(table, "\n//\n")
	rows := strings.Split(table, "\n")[1:] // without the head
	var acted []string
	for _, c := range crashes {
		acted = append(acted, fmt.Sprintf("//\t%-44s %s", c.after, c.recovery))
	}
	if !slices.Equal(rows, acted) {
		t.Errorf("the document has\n%s\nbut the test has\n%s", strings.Join(rows, "\n"), strings.Join(acted, "\n"))
	}
}

func (w way) actOut(t *testing.T, s *natstest.Server) {
	const all = 1 << 60
	var passes, unanswered atomic.Int64
	passes.Store(all)
	cfg := harness.TimerConfig(t)
	if w.change != nil {
		w.change(&cfg)
	}
	if w.mute != "" {
		cfg.APIPrefix = natstest.Proxy(t, s, func(question string, _ *nats.Msg) bool {
			if !strings.HasPrefix(question, w.mute) || passes.Add(-1) >= 0 {
				return false
			}
			unanswered.Add(1)
			return true
		})
	}
	b, c := harness.Start(t, s, cfg)
	c.Target("ORDERS", "orders.>")
	in := c.Subscribe("orders.>")
	if w.until < 0 {
		b.Crash()
	}
	start := time.Now()
	at := func(after time.Duration) { time.Sleep(time.Until(start.Add(after))) }
	g := c.Publish(crashed, "body", "Delay-For", w.wait.String(), "X-Mine", "yes").Sequence
	if w.mute != "" {
		at(w.from)
		passes.Store(w.passes)
	}
	if w.until >= 0 {
		at(w.until)
		b.Crash()
	}
	passes.Store(all)
	if w.mute != "" && unanswered.Load() == 0 {
		t.Errorf("there was no request that begins with %s", w.mute)
	}
	at(w.back)
	if w.then != nil {
		w.then(c, g)
	}
	harness.StartBroker(t, s, cfg)
	at(5 * time.Hour)
	synctest.Wait()
	var sent []time.Duration
	for _, a := range in.Arrivals() {
		sent = append(sent, a.At.Sub(start))
		id := message.ID{Stream: "DELAY_TIMERS", Sequence: g, At: start}.String()
		if a.ID != id || a.Body != "body" || a.Header.Get("X-Mine") != "yes" || !a.Due.Equal(start.Add(w.wait)) {
			t.Errorf("the broker sent %+v, want the id %s, the timer's header and due time, %s after the set", a, id, w.wait)
		}
	}
	if !slices.Equal(sent, w.expect) {
		t.Errorf("the broker sent the timer after %v, want %v", sent, w.expect)
	}
	harness.CheckCount(t, c.Arrivals("ORDERS"), min(len(w.expect), 1))
	c.CheckNoTimers()
}
