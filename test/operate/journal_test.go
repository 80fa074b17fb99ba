package operate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/journal"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

const journalStream = "DELAY_JOURNAL"

// journaled searches the journal.
func journaled(c *harness.Client, q journal.Query) ([]journal.Entry, journal.Report) {
	c.T.Helper()
	j := journal.Journal{Scan: lane.Scan{Conn: c.NC, JetStream: c.JS, APIPrefix: "$JS.API"}, Policy: c.Policy("delay")}
	var all []journal.Entry
	report, err := j.Search(context.Background(), q, func(e journal.Entry) error {
		all = append(all, e)
		return nil
	})
	if err != nil {
		c.T.Fatalf("search the journal: %v", err)
	}
	return all, report
}

// wantRecords compares records. Records with the same time may be in any order.
func wantRecords(t *testing.T, found []journal.Entry, want ...journal.Record) {
	t.Helper()
	var got []journal.Record
	for _, e := range found {
		got = append(got, e.Record)
	}
	byTime := func(a, b journal.Record) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) }
	slices.SortFunc(got, byTime)
	slices.SortFunc(want, byTime)
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

// accepted returns the id of a message that the stream stored at the current time.
func accepted(ack *jetstream.PubAck) string {
	return message.ID{Stream: ack.Stream, Sequence: ack.Sequence, At: time.Now()}.String()
}

// onTime returns the record of a delivery that was exactly on time.
func onTime(id, target string, due time.Time) journal.Record {
	return journal.Record{ID: id, Target: target, At: due.UTC(), Due: due.UTC()}
}

// TestJournalHasEachDelivery: the journal has the outcome of each message, with its target, its time, its lateness and
// its number of refusals, exact to the nanosecond.
func TestJournalHasEachDelivery(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{
			Ladder: harness.Ladder(t, "1s 5s"), RetryLadder: harness.Ladder(t, "2s"), Attempts: 2, Journal: time.Hour,
			Deliver: deliver.Modes{Default: message.ModeStream},
			Rates:   deliver.Rates{{Pattern: "slow.>", Value: 1}},
		})
		c := harness.NewClient(t, s)
		c.Target("ORDERS", "orders.>", "slow.>")
		began := time.Now().UTC()
		after := func(d time.Duration) time.Time { return began.Add(d) }
		plain := accepted(c.Publish("delay.1s.orders.a", "x"))
		late := accepted(c.Publish("delayin.1500ms.late.b", "x"))
		dead := accepted(c.Publish("delay.1s.nobody.c", "x"))
		expired := accepted(c.Publish("delay.1s.nobody.d", "x", message.HeaderExpires, "1s"))
		unread := accepted(c.Publish("delayin.soon.orders.e", "x"))
		first := accepted(c.Publish("delay.1s.slow.f", "x"))
		second := accepted(c.Publish("delay.1s.slow.f", "x"))
		time.Sleep(3 * time.Second)
		c.Target("LATE", "late.>")
		time.Sleep(time.Second)
		found, report := journaled(c, journal.Query{})
		const refused = "nobody listens on the subject (503)"
		turn := onTime(second, "slow.f", after(2*time.Second))
		turn.Due = after(time.Second) // due before its send time at the rate, and therefore not late
		wantRecords(t, found,
			journal.Record{ID: unread, Target: "orders.e", At: began, Code: message.BadTime,
				Reason: `bad duration "soon": "soon" is not a number; start with a digit, such as 30m`},
			onTime(plain, "orders.a", after(time.Second)), onTime(first, "slow.f", after(time.Second)), turn,
			journal.Record{ID: expired, Target: "nobody.d", At: after(time.Second), Due: after(time.Second), Refusals: 1,
				Code: message.Expired, Reason: "refused 1 times, and the next attempt would come after Delay-Expires " +
					"2000-01-01T00:00:02Z; last error: " + refused},
			journal.Record{ID: dead, Target: "nobody.c", At: after(3 * time.Second), Due: after(time.Second),
				Lateness: 2 * time.Second, Refusals: 2, Code: message.Undelivered,
				Reason: refused},
			journal.Record{ID: late, Target: "late.b", At: after(3500 * time.Millisecond),
				Due: after(1500 * time.Millisecond), Lateness: 2 * time.Second, Refusals: 1, Reason: refused},
		)
		if !report.Complete() || report.ReadRecords != 7 || report.MaxAge != time.Hour || !report.OldestBatch.Equal(began) {
			t.Errorf("reported %+v", report)
		}
	})
}

// TestJournalOfTwoInstances: two instances write to one stream, one after the other.
func TestJournalOfTwoInstances(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Journal: time.Hour}
		first, c := harness.Start(t, s, cfg)
		c.Target("ORDERS", "orders.>")
		began := time.Now()
		short := accepted(c.Publish("delay.1s.orders.a", "x"))
		long := accepted(c.Publish("delay.5s.orders.b", "x"))
		time.Sleep(time.Second)
		synctest.Wait() // the first message is delivered, and its record is not stored yet
		first.Stop()
		harness.StartBroker(t, s, cfg)
		time.Sleep(5 * time.Second)
		found, report := journaled(c, journal.Query{})
		wantRecords(t, found, onTime(short, "orders.a", began.Add(time.Second)),
			onTime(long, "orders.b", began.Add(5*time.Second)))
		if len(found) == 2 && found[0].Instance == found[1].Instance {
			t.Errorf("both records are of instance %s", found[0].Instance)
		}
		if !report.Complete() {
			t.Errorf("reported %+v, want a complete search", report)
		}
	})
}

// TestForgedRecordsAreIgnored: the reader ignores a record without a seal, or with the seal of another key or another
// text, and counts it as unproven. A batch that was stored twice counts once.
func TestForgedRecordsAreIgnored(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Journal: time.Hour}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		c.Target("ORDERS", "orders.>")
		id := accepted(c.Publish("delay.1s.orders.a", "x"))
		due := time.Now().Add(time.Second)
		time.Sleep(2 * time.Second)
		var batch *jetstream.RawStreamMsg
		st, err := c.JS.Stream(context.Background(), journalStream)
		for seq := uint64(1); err == nil && seq <= st.CachedInfo().State.LastSeq; seq++ {
			var m *jetstream.RawStreamMsg
			if m, err = st.GetMsg(context.Background(), seq); err == nil && strings.Contains(string(m.Data), id) {
				batch = m
			}
		}
		if err != nil || batch == nil {
			t.Fatalf("no batch has the delivery: %v", err)
		}
		put := func(body, seal string, h nats.Header) {
			if h == nil {
				h = nats.Header{}
			}
			if seal != "" {
				h.Set(message.HeaderSeal, seal)
			}
			c.Store(&nats.Msg{Subject: batch.Subject, Header: h, Data: []byte(body)})
		}
		forged := strings.ReplaceAll(string(batch.Data), "orders.a", "orders.forged")
		seal := batch.Header.Get(message.HeaderSeal)
		put(forged, "", nil)
		put(forged, seal, nil)
		stranger := message.NewKeys([]string{"nobody's secret at all"})
		put(forged, stranger.Seal(batch.Subject, []byte(forged)), nil)
		put(forged, c.Keys("delay").Seal("delaysys.owners.table", []byte(forged)), nil)
		k, h := c.Keys("delay"), message.Header{}
		k.SealMessage(batch.Subject, h, []byte(forged))
		put(forged, "", nats.Header(h)) // the seal of a message is not valid for a batch
		put("", "", nil)
		put(string(batch.Data), seal, nil)
		time.Sleep(10 * time.Minute)
		put(string(batch.Data), seal, nil)
		found, report := journaled(c, journal.Query{})
		wantRecords(t, found, onTime(id, "orders.a", due))
		if report.UnprovenMessages != 6 || report.Duplicates != 2 || !report.Complete() {
			t.Errorf("reported %+v, want 6 unproven messages, and two duplicates", report)
		}
		lastMinute := journal.Query{Since: time.Now().Add(-time.Minute)} // the search begins with the duplicate
		if found, report = journaled(c, lastMinute); len(found) > 0 || !report.Complete() || report.Duplicates != 1 {
			t.Errorf("last minute: found %+v, %+v, want nothing, and one copy", found, report)
		}
	})
}
