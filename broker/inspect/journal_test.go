package inspect

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/journal"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// journaling returns a configuration with a journal.
func journaling(t *testing.T) config.Config {
	cfg := configOf(t, "delay", "1s 5s")
	cfg.Journal = 24 * time.Hour
	return cfg
}

// writeRecords stores records, as a broker does at a clean stop.
func writeRecords(t *testing.T, s *natstest.Server, i *Inspector, records ...journal.Record) {
	t.Helper()
	if err := i.streams.ReadKeys(t.Context(), i.JetStream); err != nil {
		t.Fatal(err)
	}
	conn := s.Connect()
	inbox, err := acks.New(conn, nats.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	w := journal.NewWriter(journal.WriterConfig{
		Instance: "kitchen", Stream: i.names.JournalStream(), Subject: i.names.JournalSubject(), MaxWaiting: 1 << 20,
		MaxPayload: 1 << 20, Grace: time.Second, Log: slog.New(slog.DiscardHandler),
		Seal: i.streams.Policy().Keys.Seal,
	})
	answers, stopReceiving := context.WithCancel(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	var receiving, writing sync.WaitGroup
	receiving.Go(func() { inbox.Run(answers) })
	writing.Go(func() { w.Run(ctx, inbox) })
	for _, r := range records {
		w.Add(r)
	}
	stop()
	writing.Wait()
	stopReceiving()
	receiving.Wait()
}

// TestWhereAsksTheJournal: Where combines the journal's records with the content of the lanes.
func TestWhereAsksTheJournal(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		began := time.Now().UTC()
		writeRecords(t, s, i) // the journal begins before the messages
		id := func(n uint64) message.ID { return message.ID{Stream: "DELAY_1s", Sequence: n, At: began} }
		for range 6 {
			publish(t, i, "delay.1s.orders.a")
		}
		at := began.Add(time.Second)
		time.Sleep(10 * time.Second)
		writeRecords(t, s, i, endRecords(at, id)...)
		// The lane has removed all messages except the sixth. The fourth has no record, and the dead letter of the second
		// was removed.
		if err := i.api.PurgeBelow(t.Context(), "DELAY_1s", "", 6); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		for n, want := range map[uint64]struct{ answer, stream string }{
			1: {"delivered at 2000-01-01T00:00:01.003Z, 3ms late, on attempt 2", ""},
			2: {"became a dead letter at 2000-01-01T00:00:01Z; the dead letter was removed or resent", ""},
			3: {"delivered at 2000-01-01T00:00:02.003Z, on time, on attempt 1, 2 times in all", ""},
			4: {"neither in a lane nor a dead letter: the journal has no delivery of the message: it was delivered in the " +
				"last second of a broker that was killed, it was purged, or the id is invented", ""},
			6: {"delivered at 2000-01-01T00:00:01.003Z, on time, on attempt 1; its lane has not removed it yet",
				"DELAY_1s"},
		} {
			w, err := i.Where(t.Context(), MessageRef{ID: id(n)}, 1000, func(uint64, uint64) {})
			if err != nil {
				t.Fatal(err)
			}
			if w.Answer != want.answer || w.Stream != want.stream || w.Found != (n != 4) {
				t.Errorf("%d: got %+v, want %q", n, w, want.answer)
			}
		}
		w, err := i.Where(t.Context(), MessageRef{ID: id(1)}, 1000, func(uint64, uint64) {})
		if err != nil || w.LastError != "no stock" || w.Attempts != 1 || w.Late != 0.003 || w.Instance != "kitchen" ||
			!w.Due.Equal(at) || !w.Accepted.Equal(began) {
			t.Errorf("got %+v, %v, want the first record", w, err)
		}

		wantResentInItsLane(t, i, id(2), began, at)

		// A journal with missing records does not prove that there was no delivery.
		answerStatus(t, i, true, `{"instance":"kitchen","journal":true,"journal_missing":7}`)
		if w, err := i.Where(t.Context(), MessageRef{ID: id(4)}, 1000, func(uint64, uint64) {}); err != nil || w.Found ||
			!strings.Contains(w.Answer, "the journal is incomplete: 7 records are missing") {
			t.Errorf("got %+v, %v, want an incomplete journal", w, err)
		}
	})
}

// endRecords returns the records of six messages. The first was delivered late, and the second became a dead letter.
// The third was delivered twice, and its duplicate then became a dead letter. The fourth and the fifth have no record.
// The sixth was delivered, and its lane has not removed it.
func endRecords(at time.Time, id func(uint64) message.ID) []journal.Record {
	delivered := journal.Record{ID: id(1).String(), Target: "orders.a", At: at.Add(3 * time.Millisecond), Due: at,
		Lateness: 3 * time.Millisecond, Refusals: 1, Reason: "no stock"}
	dead := journal.Record{ID: id(2).String(), Target: "orders.a", At: at, Due: at, Refusals: 20,
		Code: message.Undelivered, Reason: "nobody listens on the subject (503)"}
	onTime := delivered
	onTime.ID, onTime.Refusals, onTime.Reason, onTime.Lateness = id(3).String(), 0, "", 0
	duplicate := onTime
	duplicate.At = duplicate.At.Add(time.Second)
	duplicateDead := dead
	duplicateDead.ID, duplicateDead.At = duplicate.ID, duplicate.At.Add(time.Second)
	stored := onTime
	stored.ID = id(6).String()
	return []journal.Record{delivered, dead, onTime, duplicate, duplicateDead, stored}
}

// wantResentInItsLane resends the dead letter of a message. Where must then return the lane of the message.
func wantResentInItsLane(t *testing.T, i *Inspector, id message.ID, accepted, due time.Time) {
	t.Helper()
	hop := &nats.Msg{Subject: "delaysys.retry.1s.orders.a", Header: nats.Header(message.Request{
		ID: id.String(), Accepted: accepted, Due: due, Hop: 3}.HopHeader())}
	i.streams.Policy().Keys.SealMessage(hop.Subject, message.Header(hop.Header), nil)
	if _, err := i.JetStream.PublishMsg(t.Context(), hop); err != nil {
		t.Fatal(err)
	}
	if w, err := i.Where(t.Context(), MessageRef{ID: id}, 1000, func(uint64, uint64) {}); err != nil ||
		w.Stream != "DELAY_RETRY_1s" || w.Code != "" {
		t.Errorf("resent: got %+v, %v, want DELAY_RETRY_1s", w, err)
	}
}

// TestWhereFindsDeliveryMeanwhile: if a message is delivered during the search, Where finds its record, although the
// record is stored almost MaxStoreDelay after the first search of the journal.
func TestWhereFindsDeliveryMeanwhile(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		publish(t, i, "delay.1s.orders.a")
		id := message.ID{Stream: "DELAY_1s", Sequence: 1, At: time.Now().UTC()}
		time.Sleep(time.Second)
		if err := i.api.PurgeBelow(t.Context(), "DELAY_1s", "", 2); err != nil {
			t.Fatal(err)
		}
		due := time.Now().UTC()
		var writing sync.WaitGroup
		writing.Go(func() {
			// After the first search of the journal and the search of the lanes.
			time.Sleep(journal.MaxStoreDelay - 100*time.Millisecond)
			writeRecords(t, s, open(t, s, cfg, ""), journal.Record{ID: id.String(), At: due, Due: due})
		})
		w, err := i.Where(t.Context(), MessageRef{ID: id}, 1000, func(uint64, uint64) {})
		writing.Wait()
		if err != nil || !w.Delivered.Equal(due) {
			t.Errorf("got %+v, %v, want the delivery", w, err)
		}
	})
}

// TestJournalIsNoLane: the journal is not listed as a lane.
func TestJournalIsNoLane(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		createStreams(t, s, cfg)
		for _, cfg := range []config.Config{cfg, configOf(t, "delay", "1s 5s")} {
			v, err := open(t, s, cfg, "").Lanes(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range v.Lanes {
				if l.Stream == "DELAY_JOURNAL" {
					t.Errorf("the journal is listed as %+v, want no lane", l)
				}
			}
		}
	})
}
