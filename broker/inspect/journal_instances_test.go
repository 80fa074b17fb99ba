package inspect

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/journal"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestInstancesWithoutJournal: the result names the running instances that keep no journal.
func TestInstancesWithoutJournal(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		i := open(t, s, cfg, "")
		ignore := func(journal.Entry) error { return nil }
		if _, err := i.Journal(t.Context(), journal.Query{}, ignore); !errors.Is(err, journal.ErrNoJournal) {
			t.Errorf("without a stream: got %v, want %v", err, journal.ErrNoJournal)
		}
		createStreams(t, s, cfg)
		writeRecords(t, s, i)
		answerStatus(t, i, true, `{"instance":"kitchen","journal":true}`, `{"instance":"cellar"}`)
		j, err := i.Journal(t.Context(), journal.Query{}, ignore)
		if err != nil || len(j.WithoutJournal) != 1 || j.WithoutJournal[0] != "cellar" || j.Complete() ||
			!j.Report.Complete() {
			t.Errorf("got %+v, %v, want cellar", j, err)
		}
		j, err = i.Journal(t.Context(), journal.Query{Until: time.Now().Add(-time.Second)}, ignore)
		if err != nil || j.WithoutJournal != nil {
			t.Errorf("a query that ends before now: got %+v, %v, want no running instances", j, err)
		}
	})
}

// answerStatus answers each status request with the bodies, until the test ends or stop is called.
func answerStatus(t *testing.T, i *Inspector, sealed bool, bodies ...string) (stop func()) {
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

// TestUnstoredRecords: a sealed answer of a running instance shows how many of its records are missing. An answer
// without a seal counts as none, since any client can write one.
func TestUnstoredRecords(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		writeRecords(t, s, i) // also reads the keys
		for _, sealed := range []bool{true, false} {
			want := uint64(0)
			if sealed {
				want = 7
			}
			stop := answerStatus(t, i, sealed, `{"instance":"kitchen","journal":true,"journal_missing":7}`)
			j, err := i.Journal(t.Context(), journal.Query{}, func(journal.Entry) error { return nil })
			if err != nil || j.Unstored != want || j.Complete() != !sealed {
				t.Errorf("sealed %v: got %+v, %v, want %d unstored records", sealed, j, err, want)
			}
			stop()
		}
	})
}

// TestJournalWithoutRequests: a user who may read the journal, but not send requests to the instances, gets the answer
// of the journal alone.
func TestJournalWithoutRequests(t *testing.T) {
	natstest.BubbleAs(t, natstest.DenyPublish("delayctl.status"), func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		createStreams(t, s, cfg)
		i := open(t, s, cfg, natstest.LimitedUser)
		writeRecords(t, s, i)
		j, err := i.Journal(t.Context(), journal.Query{}, func(journal.Entry) error { return nil })
		if err != nil || !j.Complete() {
			t.Errorf("got %+v, %v, want a complete report", j, err)
		}
	})
}
