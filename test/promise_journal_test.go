package test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/journal"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// journaled searches the journal.
func (c *client) journaled(q journal.Query) ([]journal.Record, journal.Report) {
	c.t.Helper()
	streams, err := broker.StreamsOf(broker.Config{})
	if err == nil {
		err = streams.ReadKeys(context.Background(), c.js)
	}
	if err != nil {
		c.t.Fatalf("read the keys: %v", err)
	}
	j := journal.Open(journal.Config{Conn: c.nc, JetStream: c.js, APIPrefix: "$JS.API", Policy: streams.Policy()})
	var all []journal.Record
	report, err := j.Search(context.Background(), q, func(e journal.Entry) error {
		all = append(all, e.Record)
		return nil
	})
	if err != nil {
		c.t.Fatalf("search the journal: %v", err)
	}
	return all, report
}

// wantRecords compares records, in their order.
func wantRecords(t *testing.T, got, want []journal.Record) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("record %d: got %+v, want none", i, got[i])
		case i >= len(got):
			t.Errorf("record %d: got none, want %+v", i, want[i])
		case got[i] != want[i]:
			t.Errorf("record %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

// TestJournalHasEachDelivery: what became of each message, for which target, when, how late, and after how many
// refusals, to the nanosecond.
func TestJournalHasEachDelivery(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{Ladder: ladder(t, "1s 5s"), RetryLadder: ladder(t, "2s"), Attempts: 2,
			Journal: time.Hour, Deliver: deliver.Modes{Default: message.ModeStream}})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		began := time.Now().UTC()
		publish := func(subject string, headers ...string) string {
			ack := c.publish(subject, "x", headers...)
			return message.ID{Stream: ack.Stream, Sequence: ack.Sequence, At: began}.String()
		}
		plain := publish("delay.1s.orders.a")
		late := publish("delayin.1500ms.late.b")
		dead := publish("delay.1s.nobody.c")
		expired := publish("delay.1s.nobody.d", message.HeaderExpires, "1s")
		unread := publish("delayin.soon.orders.e")
		time.Sleep(3 * time.Second)
		c.target("LATE", "late.>")
		time.Sleep(time.Second)
		got, report := c.journaled(journal.Query{})
		after := func(d time.Duration) time.Time { return began.Add(d) }
		const nobody = "nobody listens"
		wantRecords(t, got, []journal.Record{
			{ID: unread, Target: "orders.e", At: began, Code: message.BadTime, Reason: got[0].Reason},
			{ID: plain, Target: "orders.a", At: after(time.Second), Due: after(time.Second)},
			{ID: expired, Target: "nobody.d", At: after(time.Second), Due: after(time.Second), Refused: 1,
				Code: message.Expired, Reason: got[2].Reason},
			{ID: dead, Target: "nobody.c", At: after(3 * time.Second), Due: after(time.Second), Late: 2 * time.Second,
				Refused: 2, Code: message.Undelivered, Reason: got[3].Reason},
			{ID: late, Target: "late.b", At: after(3500 * time.Millisecond), Due: after(1500 * time.Millisecond),
				Late: 2 * time.Second, Refused: 1, Reason: nobody},
		})
		if !report.Complete() || report.Found != 5 || report.Looked != 5 || report.Kept != time.Hour ||
			!report.Begins.Equal(began) {
			t.Errorf("reported %+v", report)
		}
	})
}
var _ = []any{slog.New, slices.Sort[[]int], synctest.Wait, nats.NewMsg, jetstream.New}
