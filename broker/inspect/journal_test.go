package inspect

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/acks"
	"delaybroker/broker/journal"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// journaling returns a configuration with a journal.
func journaling(t *testing.T) broker.Config {
	cfg := with(t, "delay", "1s 5s")
	cfg.Journal = 24 * time.Hour
	return cfg
}

// write stores records as a broker does, which then stops.
func write(t *testing.T, s *natstest.Server, i *Inspector, records ...journal.Record) {
	t.Helper()
	if err := i.streams.ReadKeys(t.Context(), i.JetStream); err != nil {
		t.Fatal(err)
	}
	conn := s.Connect()
	box, err := acks.New(conn, nats.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	w := journal.NewWriter(journal.WriterConfig{
		Instance: "kitchen", Stream: i.names.JournalStream(), Subject: i.names.JournalSubject(), Room: 1 << 20,
		Payload: 1 << 20, Grace: time.Second, Counts: new(journal.Counts), Log: slog.New(slog.DiscardHandler),
		Seal: i.streams.Policy().Keys.Seal,
	})
	answers, end := context.WithCancel(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	var boxing, writing sync.WaitGroup
	boxing.Go(func() { box.Run(answers) })
	writing.Go(func() { w.Run(ctx, box) })
	for _, r := range records {
		w.Add(r)
	}
	stop()
	writing.Wait()
	end()
	boxing.Wait()
}

// TestWhereAsksTheJournal: Where combines the journal's records with the content of the lanes.
func TestWhereAsksTheJournal(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		began := time.Now().UTC()
		write(t, s, i) // there is a journal before the messages
		id := func(n uint64) message.ID { return message.ID{Stream: "DELAY_1s", Sequence: n, At: began} }
		for range 6 {
			publish(t, i, "delay.1s.orders.a")
		}
		at := began.Add(time.Second)
		time.Sleep(10 * time.Second)
		write(t, s, i, endings(at, id)...)
		// The lane has committed all but the last message. The one before has no record, and the letter of the second
		// is gone.
		if err := i.api.Purge(t.Context(), "DELAY_1s", 6); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		for n, want := range map[uint64]struct{ answer, stream string }{
			1: {"delivered at 2000-01-01T00:00:01.003Z, 3ms late, on attempt 2", ""},
			2: {"became a dead letter at 2000-01-01T00:00:01Z; the dead letter was removed or resent", ""},
			3: {"delivered at 2000-01-01T00:00:02.003Z, on time, on attempt 1, 2 times in all", ""},
			4: {"neither in a lane nor a dead letter: the journal is complete and has no delivery of " +
				"it: it was purged, or the id is invented", ""},
			6: {"delivered at 2000-01-01T00:00:01.003Z, on time, on attempt 1; its lane has not removed it yet",
				"DELAY_1s"},
		} {
			w, err := i.Where(t.Context(), Wanted{ID: id(n)}, 1000, func(uint64, uint64) {})
			if err != nil {
				t.Fatal(err)
			}
			if w.Answer != want.answer || w.Stream != want.stream || w.Found != (n != 4) {
				t.Errorf("%d: got %+v, want %q", n, w, want.answer)
			}
		}
		w, err := i.Where(t.Context(), Wanted{ID: id(1)}, 1000, func(uint64, uint64) {})
		if err != nil || w.LastError != "no stock" || w.Attempts != 1 || w.Late != 0.003 || w.Instance != "kitchen" ||
			!w.Due.Equal(at) || !w.Accepted.Equal(began) {
			t.Errorf("got %+v, %v", w, err)
		}

		wantResentInItsLane(t, i, id(2), began, at)

		// A journal with a gap does not prove that there was no delivery.
		time.Sleep(time.Hour)
		if w, err := i.Where(t.Context(), Wanted{ID: id(4)}, 1000, func(uint64, uint64) {}); err != nil || w.Found ||
			!strings.Contains(w.Answer, "the journal is incomplete (no instance wrote") {
			t.Errorf("got %+v, %v", w, err)
		}
	})
}

// endings returns the records of six messages: two were delivered, late and on time, one became a dead letter, one was
// delivered twice and then became one, and one is in a lane that has not committed it. The fourth has no record.
func endings(at time.Time, id func(uint64) message.ID) []journal.Record {
	delivered := journal.Record{ID: id(1).String(), Target: "orders.a", At: at.Add(3 * time.Millisecond), Due: at,
		Late: 3 * time.Millisecond, Refused: 1, Reason: "no stock"}
	dead := journal.Record{ID: id(2).String(), Target: "orders.a", At: at, Due: at, Refused: 20,
		Code: message.Undelivered, Reason: "the target refused all of 20 attempts"}
	late := delivered
	late.ID, late.Refused, late.Reason, late.Late = id(3).String(), 0, "", 0
	again := late
	again.At = again.At.Add(time.Second)
	died := dead
	died.ID, died.At = again.ID, again.At.Add(time.Second)
	stored := late
	stored.ID = id(6).String()
	return []journal.Record{delivered, dead, late, again, died, stored}
}

// wantResentInItsLane resends the dead letter of a message: its place in a lane counts, and not its earlier end.
func wantResentInItsLane(t *testing.T, i *Inspector, id message.ID, accepted, due time.Time) {
	t.Helper()
	hop := &nats.Msg{Subject: "delaysys.retry.1s.orders.a", Header: nats.Header(message.Request{
		ID: id.String(), Accepted: accepted, Due: due, Hop: 3}.HopHeader())}
	i.streams.Policy().Keys.SealMessage(hop.Subject, message.Header(hop.Header), nil, time.Now())
	if _, err := i.JetStream.PublishMsg(t.Context(), hop); err != nil {
		t.Fatal(err)
	}
	if w, err := i.Where(t.Context(), Wanted{ID: id}, 1000, func(uint64, uint64) {}); err != nil ||
		w.Stream != "DELAY_RETRY_1s" || w.Code != "" {
		t.Errorf("resent: got %+v, %v", w, err)
	}
}

// TestWhereMeetsWhatIsDeliveredMeanwhile: a message that leaves the last lane during the search is found in the
// journal, although its record comes after the first search there.
func TestWhereMeetsWhatIsDeliveredMeanwhile(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		publish(t, i, "delay.1s.orders.a")
		id := message.ID{Stream: "DELAY_1s", Sequence: 1, At: time.Now().UTC()}
		time.Sleep(time.Second)
		if err := i.api.Purge(t.Context(), "DELAY_1s", 2); err != nil {
			t.Fatal(err)
		}
		due := time.Now().UTC()
		var writing sync.WaitGroup
		writing.Go(func() {
			time.Sleep(100 * time.Millisecond) // after the search of the lanes, and the first of the journal
			write(t, s, open(t, s, cfg, ""), journal.Record{ID: id.String(), At: due, Due: due})
		})
		w, err := i.Where(t.Context(), Wanted{ID: id}, 1000, func(uint64, uint64) {})
		writing.Wait()
		if err != nil || !w.Delivered.Equal(due) {
			t.Errorf("got %+v, %v, want it delivered", w, err)
		}
	})
}

// TestJournalOfInstancesWithout: the result names the running instances that keep no journal.
func TestJournalOfInstancesWithout(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		i := open(t, s, cfg, "")
		none := func(journal.Entry) error { return nil }
		if _, err := i.Journal(t.Context(), journal.Query{}, none); !errors.Is(err, journal.ErrNone) {
			t.Errorf("without a stream: got %v, want %v", err, journal.ErrNone)
		}
		provision(t, s, cfg)
		write(t, s, i)
		answers(t, i, true, `{"instance":"kitchen","journal":true}`, `{"instance":"cellar"}`)
		j, err := i.Journal(t.Context(), journal.Query{}, none)
		if err != nil || len(j.Without) != 1 || j.Without[0] != "cellar" || j.Complete() || !j.Report.Complete() {
			t.Errorf("got %+v, %v, want cellar", j, err)
		}
		j, err = i.Journal(t.Context(), journal.Query{Until: time.Now().Add(-time.Second)}, none)
		if err != nil || j.Without != nil {
			t.Errorf("until before now: got %+v, %v, want nothing of those that run now", j, err)
		}
	})
}

// answers answers in place of running instances, until the test ends or stop is called.
func answers(t *testing.T, i *Inspector, sealed bool, bodies ...string) (stop func()) {
	t.Helper()
	sub, err := i.Conn.Subscribe("delayctl.status", func(m *nats.Msg) {
		for _, body := range bodies {
			a := &nats.Msg{Subject: m.Reply, Data: []byte(body), Header: nats.Header{}}
			if sealed {
				a.Header.Set(message.HeaderSeal, i.streams.Policy().Keys.Seal(m.Reply, a.Data))
			}
			_ = i.Conn.PublishMsg(a)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = sub.Unsubscribe() }
}

// TestJournalOfInstancesThatRun: an instance that has written and not ended may have been killed. If the instances
// report that they run and which records are not stored yet, the gaps are known at once. Only a broker's seal proves
// such an answer. If the instances cannot be asked, the report contains that.
func TestJournalOfInstancesThatRun(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		provision(t, s, cfg)
		i := open(t, s, cfg, "")
		batch := func(body string) {
			subject, h := i.names.JournalSubject(), nats.Header{}
			h.Set(message.HeaderSeal, i.streams.Policy().Keys.Seal(subject, []byte(body)))
			m := &nats.Msg{Subject: subject, Header: h, Data: []byte(body)}
			if _, err := i.JetStream.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		write(t, s, i) // it reads the keys, too
		batch(`{"v":1,"b":"kitchen","s":"FIRST","n":1}` + "\n")
		stored := time.Now().UTC()
		time.Sleep(10 * time.Second)
		want := func(name, why string, from time.Time, records int) {
			t.Helper()
			j, err := i.Journal(t.Context(), journal.Query{}, func(journal.Entry) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			var all []journal.Hole
			for _, h := range j.Holes {
				if !h.To.Equal(j.Asked) || !strings.Contains(h.Why, why) {
					t.Errorf("%s: got the hole %+v, want one until %s", name, h, j.Asked)
				}
				h.To, h.Why = time.Time{}, ""
				all = append(all, h)
			}
			hole := journal.Hole{Instance: "kitchen", From: from, Records: records}
			if from.IsZero() {
				hole = journal.Hole{From: j.Asked.Add(-journal.DoubtAfter)}
			}
			if why == "" && !j.Complete() || why != "" && !slices.Equal(all, []journal.Hole{hole}) {
				t.Errorf("%s: got %+v, want %+v", name, all, hole)
			}
		}
		want("nobody runs", "killed or lost its connection", stored.Add(-time.Second), 0)
		for _, test := range []struct {
			name, answer string
			sealed       bool
			why          string
			from         time.Time
			records      int
		}{
			{"it runs", `{"instance":"kitchen","journal":true,"journal_writer":{"start":"FIRST"}}`, true, "", time.Time{}, 0},
			{"a stranger says so", `{"instance":"kitchen","journal":true,"journal_writer":{"start":"FIRST"}}`, false,
				"the running instances did not answer", time.Time{}, 0},
			{"of an older version", `{"instance":"kitchen","journal":true}`, true, "", time.Time{}, 0},
			{"another start", `{"instance":"kitchen","journal":true,"journal_writer":{"start":"SECOND"}}`, true,
				"killed or lost its connection", stored.Add(-time.Second), 0},
			{"it cannot write", `{"instance":"kitchen","journal":true,"journal_writer":{"start":"FIRST","unstored":7,` +
				`"since":"2000-01-01T00:00:02Z"}}`, true, "not stored yet", stored.Truncate(time.Second).Add(2 * time.Second), 7},
		} {
			stop := answers(t, i, test.sealed, test.answer)
			want(test.name, test.why, test.from, test.records)
			stop()
		}
	})
}

// TestJournalOfWhoMayNotAsk: for a user who may read the journal, but not ask the instances, the report shows that the
// last minute is unknown.
func TestJournalOfWhoMayNotAsk(t *testing.T) {
	bubble(t, natstest.Denied("delayctl.status"), func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		provision(t, s, cfg)
		i := open(t, s, cfg, tried)
		write(t, s, i)
		none := func(journal.Entry) error { return nil }
		j, err := i.Journal(t.Context(), journal.Query{}, none)
		if err != nil || len(j.Holes) != 1 || !strings.Contains(j.Holes[0].Why, "the running instances did not answer") {
			t.Errorf("got %+v, %v, want that the instances did not answer", j.Holes, err)
		}
		time.Sleep(90 * time.Second)
		before := journal.Query{Until: j.Asked.Add(-time.Second)}
		if j, err = i.Journal(t.Context(), before, none); err != nil || !j.Complete() {
			t.Errorf("of before the last minute: got %+v, %v, want it complete", j.Holes, err)
		}
	})
}

// TestNobodyOwnsTheJournal: the journal is not a lane.
func TestNobodyOwnsTheJournal(t *testing.T) {
	bubble(t, server.Permissions{}, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		provision(t, s, cfg)
		for _, as := range []broker.Config{cfg, with(t, "delay", "1s 5s")} {
			v, err := open(t, s, as, "").Look(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range v.Lanes {
				if l.Stream == "DELAY_JOURNAL" {
					t.Errorf("it is shown as %+v", l)
				}
			}
		}
	})
}
