package inspect

import (
	"errors"
	"slices"
	"strings"
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
		provision(t, s, cfg)
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

// TestInstancesWithJournal: an instance whose journal has no end may have been killed. A sealed answer of the instance
// shows that the instance runs, and how many of its records are not stored yet. Without a sealed answer, the report has
// a hole.
func TestInstancesWithJournal(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
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
		writeRecords(t, s, i) // also reads the keys
		batch(`{"v":1,"b":"kitchen","s":"FIRST","n":1}` + "\n")
		stored := time.Now().UTC()
		time.Sleep(10 * time.Second)
		want := func(name, reason string, from time.Time, records int) {
			t.Helper()
			j, err := i.Journal(t.Context(), journal.Query{}, func(journal.Entry) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			var holes []journal.Hole
			for _, h := range j.Holes {
				if !h.To.Equal(j.SearchedAt) || !strings.Contains(h.Reason, reason) {
					t.Errorf("%s: got the hole %+v, want one until %s", name, h, j.SearchedAt)
				}
				h.To, h.Reason = time.Time{}, ""
				holes = append(holes, h)
			}
			hole := journal.Hole{Instance: "kitchen", From: from, Records: records}
			if from.IsZero() {
				hole = journal.Hole{From: j.SearchedAt.Add(-journal.DoubtAfter)}
			}
			if reason == "" && !j.Complete() || reason != "" && !slices.Equal(holes, []journal.Hole{hole}) {
				t.Errorf("%s: got %+v, want %+v", name, holes, hole)
			}
		}
		want("no instance runs", "killed or lost its connection", stored.Add(-time.Second), 0)
		for _, test := range []struct {
			name, answer string
			sealed       bool
			reason       string
			from         time.Time
			records      int
		}{
			{"the instance runs", `{"instance":"kitchen","journal":true,"journal_writer":{"start":"FIRST"}}`, true, "",
				time.Time{}, 0},
			{"an answer without a seal", `{"instance":"kitchen","journal":true,"journal_writer":{"start":"FIRST"}}`, false,
				"the running instances did not answer", time.Time{}, 0},
			{"an instance of an older version", `{"instance":"kitchen","journal":true}`, true, "", time.Time{}, 0},
			{"a restarted instance", `{"instance":"kitchen","journal":true,"journal_writer":{"start":"SECOND"}}`, true,
				"killed or lost its connection", stored.Add(-time.Second), 0},
			{"an instance that cannot write", `{"instance":"kitchen","journal":true,"journal_writer":{"start":"FIRST",` +
				`"unstored":7,"since":"2000-01-01T00:00:02Z"}}`, true, "not stored yet",
				stored.Truncate(time.Second).Add(2 * time.Second), 7},
		} {
			stop := answerStatus(t, i, test.sealed, test.answer)
			want(test.name, test.reason, test.from, test.records)
			stop()
		}
	})
}

// TestJournalWithoutRequests: if a user may read the journal, but not send requests to the instances, the last minute
// of the report is a hole.
func TestJournalWithoutRequests(t *testing.T) {
	natstest.BubbleAs(t, natstest.DenyPublish("delayctl.status"), func(t *testing.T, s *natstest.Server) {
		cfg := journaling(t)
		provision(t, s, cfg)
		i := open(t, s, cfg, natstest.LimitedUser)
		writeRecords(t, s, i)
		ignore := func(journal.Entry) error { return nil }
		j, err := i.Journal(t.Context(), journal.Query{}, ignore)
		if err != nil || len(j.Holes) != 1 || !strings.Contains(j.Holes[0].Reason, "the running instances did not answer") {
			t.Errorf("got %+v, %v, want one hole, because the instances did not answer", j.Holes, err)
		}
		time.Sleep(90 * time.Second)
		earlier := journal.Query{Until: j.SearchedAt.Add(-time.Second)}
		if j, err = i.Journal(t.Context(), earlier, ignore); err != nil || !j.Complete() {
			t.Errorf("before the last minute: got %+v, %v, want a complete report", j.Holes, err)
		}
	})
}
