package operate

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/journal"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestJournalDelaysNoDelivery: while the journal's stream is deleted, silent or full, each delivery is exactly on time,
// and committed. The broker counts dropped records and logs them once a minute, and the next batch reports them.
func TestJournalDelaysNoDelivery(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]journalFault{
		"gone": {
			begin: func(c *harness.Client) { c.Remove(journalStream) },
			end:   func(c *harness.Client) { provisionJournal(c) },
		},
		"silent": {
			begin: func(c *harness.Client) { replaceJournal(c, func(s *jetstream.StreamConfig) { s.NoAck = true }) },
			end:   func(c *harness.Client) { c.Remove(journalStream); provisionJournal(c) },
		},
		"full": {
			begin: func(c *harness.Client) {
				replaceJournal(c, func(s *jetstream.StreamConfig) { s.Discard, s.MaxBytes = jetstream.DiscardNew, 1 })
			},
			end: func(c *harness.Client) { c.Remove(journalStream); provisionJournal(c) },
		},
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			fault.check(t, s)
		})
	}
}

// A journalFault is a fault of the journal's stream.
type journalFault struct{ begin, end func(c *harness.Client) }

// check checks that deliveries continue during the fault, and that their records are missing.
func (f journalFault) check(t *testing.T, s *natstest.Server) {
	t.Helper()
	log := harness.NewCountingLog()
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Journal: time.Hour, Log: slog.New(log)}
	b, c := harness.Start(t, s, cfg)
	c.Target("ORDERS", "orders.>")
	in := c.Subscribe("orders.>")
	time.Sleep(time.Second)
	f.begin(c)
	began := time.Now().UTC()
	var ids []string
	for n := range 3 {
		ids = append(ids, accepted(c.Publish("delay.1s.orders.a", "x")))
		harness.CheckExactly(t, in, time.Now().Add(time.Second), n)
	}
	time.Sleep(time.Second)
	c.CheckEmptyBut(journalStream)
	wantUnstored(t, s, cfg, 3)
	time.Sleep(7 * time.Minute) // longer than the broker keeps a batch
	if got := b.Broker.Status().Journal.Dropped; got != 3 {
		t.Errorf("%d records were dropped, want 3", got)
	}
	wantUnstored(t, s, cfg, 3) // also after the records were dropped
	f.end(c)
	time.Sleep(2 * time.Minute)
	c.Publish("delay.1s.orders.b", "x")
	time.Sleep(2 * time.Second)
	found, report := journaled(c, journal.Query{IDs: ids})
	if len(found) > 0 {
		t.Errorf("found %+v, want none", found)
	}
	if report.Dropped != 3 || report.DroppedUntil.Before(began.Add(9*time.Minute)) {
		t.Errorf("reported %+v, want 3 dropped until now", report)
	}
	wantUnstored(t, s, cfg, 0)
	if found, _ = journaled(c, journal.Query{Target: "orders.b"}); len(found) != 1 {
		t.Errorf("after the fault: found %+v, want one record", found)
	}
	if got := log.CountPrefix("cannot store the journal"); got < 5 || got > 10 {
		t.Errorf("the fault was logged %d times in seven minutes, want about once a minute", got)
	}
}

// wantUnstored expects a number of unstored records in the report to an operator.
func wantUnstored(t *testing.T, s *natstest.Server, cfg broker.Config, want uint64) {
	t.Helper()
	j, err := harness.Inspect(t, s, cfg).Journal(t.Context(), journal.Query{}, func(journal.Entry) error { return nil })
	if errors.Is(err, journal.ErrNoJournal) {
		return // the stream is deleted
	}
	if err != nil || j.Unstored != want {
		t.Errorf("%d records are not stored, %v, want %d", j.Unstored, err, want)
	}
}

// replaceJournal creates the journal's stream again, with a changed configuration. An update of the stream would remove
// all messages under fake time, since nats-server then measures their age by the real clock.
func replaceJournal(c *harness.Client, change func(*jetstream.StreamConfig)) {
	c.T.Helper()
	cfg := c.Remove(journalStream)
	change(&cfg)
	c.Create(cfg)
}

// provisionJournal does what "delaybroker provision" does.
func provisionJournal(c *harness.Client) {
	c.T.Helper()
	streams, err := broker.StreamsOf(
		broker.Config{Ladder: harness.Ladder(c.T, "1s 5s"), Journal: time.Hour, Provision: true})
	if err == nil {
		_, _, err = streams.Provisioner(c.JS).Provision(context.Background(), streams.Wanted(c.NC.MaxPayload(), false))
	}
	natstest.NoError(c.T, err)
}

// TestJournalOfKilledInstance: the records of the last 150 ms of a killed instance are missing. The messages themselves
// are delivered. A clean stop stores all records.
func TestJournalOfKilledInstance(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Journal: time.Hour}
		i, c := harness.Start(t, s, cfg)
		c.Target("ORDERS", "orders.>")
		began := time.Now().UTC()
		stored := accepted(c.Publish("delay.1s.orders.a", "x"))
		time.Sleep(160 * time.Millisecond) // the first batch is stored before the second message is delivered
		lost := accepted(c.Publish("delay.1s.orders.b", "x"))
		time.Sleep(1140 * time.Millisecond)
		synctest.Wait()
		i.Crash()
		time.Sleep(time.Second)
		i = harness.StartBroker(t, s, cfg)
		again := accepted(c.Publish("delay.1s.orders.c", "x"))
		due := time.Now().Add(time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		i.Stop() // directly after the delivery
		harness.CheckBodies(t, c.Arrivals("ORDERS"), "x×3")
		found, report := journaled(c, journal.Query{})
		want := []journal.Record{onTime(stored, "orders.a", began.Add(time.Second)), onTime(again, "orders.c", due)}
		if len(found) == 3 { // the delivery of the second message was not committed, and the next instance repeated it
			repeated := found[1].Record
			if repeated.ID != lost || repeated.At.Before(began.Add(1300*time.Millisecond)) {
				t.Errorf("got the unexpected record %+v", repeated)
			}
			want = append(want, repeated)
		}
		wantRecords(t, found, want...)
		if report.Dropped != 0 {
			t.Errorf("reported %+v, want no dropped record", report)
		}
	})
}
