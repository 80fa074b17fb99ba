package operate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/journal"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestCoreSubscribersOfManySubjects publishes 50,000 messages for as many subjects of core subscribers, all due at the
// same time, and then as many again at full speed. Each message arrives once. The test runs in real time, since late
// answers of the server might cause duplicates.
func TestCoreSubscribersOfManySubjects(t *testing.T) {
	natstest.SkipShort(t)
	s := natstest.RunListening(t)
	b, c := harness.Start(t, s, broker.Config{})
	seen := c.Tally("ui.>")
	const each = 50_000
	at := time.Now().Add(8 * time.Second)
	var last nats.PubAckFuture
	js, err := c.NC.JetStream(nats.PublishAsyncMaxPending(10_000))
	natstest.NoError(t, err)
	publish := func(subject string) {
		if last, err = js.PublishAsync(subject, []byte("x"), nats.StallWait(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range each {
		publish(fmt.Sprintf("delayat.%d.ui.%d.notify", at.UnixMilli(), i))
	}
	for i := range each {
		publish(fmt.Sprintf("delay.1s.ui.%d.notify", each+i))
	}
	<-last.Ok()
	seen.Await(2*each, 2*time.Minute)
	time.Sleep(7 * time.Second) // without an answer, the broker would send duplicates after 5 s
	if messages, deliveries := seen.Count(); messages != 2*each || deliveries != messages {
		t.Errorf("%d of %d messages arrived %d times; outcomes %v", messages, 2*each, deliveries,
			b.Broker.Status().Outcomes)
	}
}

// TestLatenessOfCoreSubscribers: the reported lateness of a delivery to core subscribers is the lateness at the
// subscribers. The broker waits 50 ms for an answer before it counts the delivery, and at first another 50 ms until it
// knows the streams. The journal, the metrics, the traces and the command where do not count that time.
func TestLatenessOfCoreSubscribers(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		spans := &collector{}
		tr, stop := startTracing(t, spans)
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Journal: time.Hour, Ended: tr.Ended}
		i, c := harness.Start(t, s, cfg)
		in := c.Subscribe("ui.>")
		var ids []string
		var want []journal.Record
		for n := range 2 {
			id := accepted(c.Publish("delay.1s.ui.a", "x"))
			due := time.Now().Add(time.Second)
			harness.CheckExactly(t, in, due, n)
			ids, want = append(ids, id), append(want, onTime(id, "ui.a", due))
			time.Sleep(time.Second)
		}
		found, _ := journaled(c, journal.Query{})
		wantRecords(t, found, want...)
		got := scrape(t, i)
		if count, sum := got["lateness_seconds level count"], got["lateness_seconds level sum"]; count != 2 || sum != 0 {
			t.Errorf("metrics: %v deliveries were late by %v s in all, want 2 and 0", count, sum)
		}
		ref := harness.MustMessageRef(t, ids[1])
		w, err := harness.Inspect(t, s, cfg).Where(t.Context(), ref, 100, func(uint64, uint64) {})
		if err != nil || !w.Delivered.Equal(want[1].Due) || w.Late != 0 || !strings.Contains(w.Answer, "on time") {
			t.Errorf("where returns %+v, %v, want a delivery on time", w, err)
		}
		stop()
		for n, span := range spans.all {
			text := formatSpan(span, want[n].Due)
			if text != "-1s-0s hops=0 attempts=1 ui.a late=0, due at 0s" {
				t.Errorf("span %d: %s, want the end at the due time", n, text)
			}
		}
		if len(spans.all) != 2 {
			t.Errorf("%d spans, want 2", len(spans.all))
		}
	})
}
