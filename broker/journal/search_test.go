package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestSearchFilters: each filter selects its records, alone and with others.
func TestSearchFilters(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		began := time.Now().UTC()
		h := head{Instance: "kitchen", Start: "1"}
		put := func(records ...Record) {
			h.Number++
			k.put(h, records...)
		}
		made := func(name, target string, late time.Duration) Record {
			now := time.Now().UTC()
			id := "DELAY_1s-" + name + "-946684800000000000"
			return Record{ID: id, Target: target, At: now, Due: now.Add(-late), Lateness: late}
		}
		dead := func(r Record, code message.Code) Record { r.Code = code; return r }
		a := made("1", "orders.a", 0)
		b := made("2", "orders.b", 2*time.Second)
		put(a, b)
		time.Sleep(time.Minute)
		c := dead(made("3", "orders.a", time.Second), message.Undelivered)
		d := dead(made("4", "", 0), message.BadTarget)
		e := dead(made("11", "mail", time.Hour), message.Expired)
		d.Series, d.Round = 1, 2
		e.Series, e.Round = 12, 3
		put(c, d, e)
		put()
		for _, test := range []struct {
			query Query
			want  []Record
		}{
			{Query{}, []Record{a, b, c, d, e}},
			{Query{Target: "orders.a"}, []Record{a, c}},
			{Query{Target: "orders.*"}, []Record{a, b, c}},
			{Query{Target: ">"}, []Record{a, b, c, e}},
			{Query{Target: "orders"}, nil},
			{Query{Since: began.Add(1)}, []Record{c, d, e}},
			{Query{Since: began}, []Record{a, b, c, d, e}},
			{Query{Until: began.Add(1)}, []Record{a, b}},
			{Query{Until: began}, nil},
			{Query{Since: began.Add(time.Second), Until: began.Add(2 * time.Second)}, nil},
			{Query{IDs: []string{a.ID}}, []Record{a}},
			{Query{IDs: []string{e.ID, b.ID}}, []Record{b, e}},
			{Query{IDs: []string{"DELAY_1s-1"}}, []Record{a}}, // and not DELAY_1s-11
			{Query{IDs: []string{"DELAY_1s-1-1"}}, nil},
			{Query{IDs: []string{"ELAY_1s-1"}}, nil},
			{Query{IDs: []string{"DELAY_1s-11"}, Since: began.Add(1)}, []Record{e}},
			{Query{Outcomes: []Outcome{delivered}}, []Record{a, b}},
			{Query{Outcomes: []Outcome{Dead}}, []Record{c, d, e}},
			{Query{Outcomes: []Outcome{"expired", "bad_target"}}, []Record{d, e}},
			{Query{Series: 12}, []Record{e}},
			{Query{Series: 1}, []Record{d}},
			{Query{Series: 2}, nil},
			{Query{Lateness: time.Second}, []Record{b, e}},
			{Query{Lateness: time.Second, Target: "orders.>", Outcomes: []Outcome{delivered}}, []Record{b}},
		} {
			k.wantFound(test.query, test.want)
		}
	})
}

// wantFound fails unless a complete search returns these records.
func (k *kit) wantFound(q Query, want []Record) {
	k.Helper()
	found, report := k.search(q)
	var got []Record
	for _, f := range found {
		got = append(got, f.Record)
	}
	if !slices.Equal(got, want) || report.Found != len(got) {
		k.Errorf("%+v: found %+v, want %+v", q, got, want)
	}
	if !report.Complete() {
		k.Errorf("%+v: reported %+v, want a complete search", q, report)
	}
}

// TestSearchContinues: a limit ends a search, which returns the position of the next search. Successive searches return
// each record once, with any limit.
func TestSearchContinues(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		want := 0
		for n := range uint64(5) {
			var records []Record
			for range n * 3 {
				records = append(records, record(want))
				want++
			}
			k.put(head{Instance: "kitchen", Start: "1", Number: n + 1}, records...)
		}
		for _, limit := range []int{1, 3, 7, want - 1, want, want + 1} {
			got, searches := 0, 0
			for from := (Place{}); ; searches++ {
				found, r := k.search(Query{Limit: limit, From: from})
				for _, f := range found {
					if id := record(got).ID; f.ID != id {
						t.Fatalf("limit %d: record %d is %s, want %s", limit, got, f.ID, id)
					}
					got++
				}
				if from = r.ContinueAt; from.Sequence == 0 {
					if !r.Complete() {
						t.Errorf("limit %d: the last search reports %+v, want it complete", limit, r)
					}
					break
				}
				if r.Complete() || len(found) != limit {
					t.Fatalf("limit %d: stopped after %d, complete %v; want the limit, and false", limit, len(found), r.Complete())
				}
				if back, err := ParsePlace(from.String()); err != nil || back != from {
					t.Fatalf("%s is parsed as %s, %v", from, back, err)
				}
			}
			if got != want || searches != (want-1)/limit {
				t.Errorf("limit %d: found %d in %d searches, want %d", limit, got, searches+1, want)
			}
		}
	})
}

// TestSearchBeginsAtItsTime: a search of an interval reads at most a few minutes before and after the interval. It
// reports the records that the brokers dropped then, and not those of other times.
func TestSearchBeginsAtItsTime(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		began := time.Now().UTC()
		for n := range uint64(360) { // six hours
			h := head{Instance: "kitchen", Start: "1", Number: n + 1}
			if n%60 == 30 {
				h.Lost = 7
			}
			k.put(h, record(int(n)))
			time.Sleep(time.Minute)
		}
		hour := func(n int) time.Time { return began.Add(time.Duration(n) * time.Hour) }
		found, r := k.search(Query{Since: hour(3), Until: hour(4)})
		at := hour(3).Add(30 * time.Minute)
		if len(found) != 60 || r.ReadRecords > 60+10 || r.Dropped != 7 || !r.DroppedUntil.Equal(at) || r.Complete() {
			t.Errorf("found %d, reported %+v; want 60 of at most 70, and 7 dropped after half an hour", len(found), r)
		}
		found, r = k.search(Query{Since: hour(3), Until: hour(3).Add(20 * time.Minute)})
		if len(found) != 20 || !r.Complete() {
			t.Errorf("without a drop: found %d, reported %+v; want 20, and a complete search", len(found), r)
		}
		if _, r = k.search(Query{Since: began.Add(-1), Until: hour(0).Add(time.Minute)}); !r.BeginsLater || r.Complete() {
			t.Errorf("before it began: reported %+v, want that the journal begins later", r)
		}
		if _, r = k.search(Query{Since: began, Until: hour(0).Add(time.Minute)}); r.BeginsLater || !r.Complete() {
			t.Errorf("from its beginning: reported %+v, want a complete search", r)
		}
	})
}

// TestCopies: a batch that was stored twice counts once, also if the search begins between both.
func TestCopies(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		old, recent := record(1), record(2)
		for n := range uint64(70) {
			if n == 0 || n == 60 {
				k.put(head{Instance: "cellar", Start: "1", Number: 1}, old)
			}
			recent = record(2)
			k.put(head{Instance: "kitchen", Start: "2", Number: n + 1}, recent)
			time.Sleep(time.Minute)
		}
		k.put(head{Instance: "kitchen", Start: "2", Number: 70}, recent)
		found, r := k.search(Query{Since: time.Now().Add(-20 * time.Minute)})
		if len(found) != 20 || r.Duplicates != 2 || !r.Complete() {
			t.Errorf("found %d, %d copies, want 20 and 2", len(found), r.Duplicates)
		}
	})
}

// TestStartsAreBounded: a search remembers at most maxStarts starts, and then still recognizes the next copy.
func TestStartsAreBounded(t *testing.T) {
	s := make(starts)
	for n := range 3 * maxStarts {
		h := head{Start: fmt.Sprint(n), Number: 1}
		if s.isCopy(h, time.Now()) || !s.isCopy(h, time.Now()) || len(s) > maxStarts {
			t.Fatalf("start %d: want a new batch, its copy, and at most %d starts, got %d", n, maxStarts, len(s))
		}
	}
}

// TestUnsealedBatch: with a secret, only a batch with a seal counts. Without a secret, all batches count.
func TestUnsealedBatch(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		for _, secrets := range [][]string{{"a secret of sixteen"}, nil} {
			k.policy.Keys = message.NewKeys(secrets)
			body := new(records).body(head{Instance: "kitchen", Start: "1", Number: 1}, nil)
			if _, err := k.js.Publish(context.Background(), k.policy.Names.JournalSubject(), body); err != nil {
				t.Fatal(err)
			}
			if _, r := k.search(Query{}); (r.UnprovenMessages > 0) != (secrets != nil) {
				t.Errorf("with the secrets %q: %d batches do not count, want some only with a secret", secrets, r.UnprovenMessages)
			}
		}
	})
}

// TestSearchEnds: a search ends with the error that emit returns. Without a stream it returns ErrNoJournal, and
// an empty journal is incomplete.
func TestSearchEnds(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		none := func(Entry) error { return nil }
		if _, err := k.open().Search(context.Background(), Query{}, none); !errors.Is(err, ErrNoJournal) {
			t.Errorf("without a stream: got %v, want %v", err, ErrNoJournal)
		}
		k.create()
		if _, r := k.search(Query{Since: time.Now().Add(-time.Hour)}); r.Complete() {
			t.Errorf("an empty journal is complete, want that it begins later: %+v", r)
		}
		k.put(head{Instance: "kitchen", Start: "1", Number: 1}, record(1), record(2))
		stop := errors.New("no more")
		calls := 0
		_, err := k.open().Search(context.Background(), Query{}, func(Entry) error { calls++; return stop })
		if !errors.Is(err, stop) || calls != 1 {
			t.Errorf("got %v after %d calls, want one", err, calls)
		}
		st, err := k.js.Stream(context.Background(), k.policy.Names.JournalStream())
		if err != nil || st.CachedInfo().State.Consumers != 0 {
			t.Errorf("after the search: %v, %+v; want no consumer", err, st.CachedInfo().State)
		}
	})
}

// TestSearchTimeout: a search fails if JetStream does not answer the request for the stream's state, for a consumer, or
// for messages.
func TestSearchTimeout(t *testing.T) {
	for _, request := range []string{"STREAM.INFO.", "CONSUMER.CREATE.", "CONSUMER.MSG.NEXT."} {
		natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
			k := newKit(t, s)
			k.create()
			k.put(head{Instance: "kitchen", Start: "1", Number: 1}, record(1), record(2))
			var muted atomic.Int64
			natstest.Proxy(t, s, func(subject string, _ *nats.Msg) bool {
				silent := strings.HasPrefix(subject, request)
				if silent {
					muted.Add(1)
				}
				return silent
			})
			js, err := jetstream.NewWithAPIPrefix(k.conn, natstest.ProxyAPI)
			if err != nil {
				t.Fatal(err)
			}
			j := Journal{lane.Scan{Conn: k.conn, JetStream: js, APIPrefix: natstest.ProxyAPI}, k.policy}
			r, err := j.Search(context.Background(), Query{}, func(Entry) error { return nil })
			if err == nil || muted.Load() == 0 {
				t.Errorf("%s is not answered: got %+v, %v after %d requests, want an error", request, r, err, muted.Load())
			}
		})
	}
}

func TestParsePlaceRefuses(t *testing.T) {
	for _, s := range []string{"", "1", "0.1", "1.", ".1", "1.2.3", "-1.2", "1.-2", "a.b", "1.4294967296"} {
		if p, err := ParsePlace(s); err == nil {
			t.Errorf("%q is parsed as %v, want an error", s, p)
		}
	}
}

// BenchmarkSearch searches a million records by id and by target. The server is in this process.
func BenchmarkSearch(b *testing.B) {
	s := natstest.Run(b, b.TempDir())
	k := newKit(b, s)
	k.create()
	w, stop := k.writer("kitchen")
	const many = 1_000_000
	for n := range many {
		w.Add(record(n))
		if n%10_000 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	stop()
	if _, dropped := w.Counts(); dropped > 0 {
		b.Fatalf("%d were dropped", dropped)
	}
	var last string
	r, err := k.open().Search(context.Background(), Query{}, func(e Entry) error { last = e.ID; return nil })
	if err != nil || r.Found != many || !r.Complete() {
		b.Fatalf("found %d, %+v, %v", r.Found, r, err)
	}
	b.Logf("%d bytes in the stream for each", r.Bytes/many)
	for _, q := range []Query{{IDs: []string{last}}, {Target: "orders.*", Lateness: time.Hour}} {
		b.Run(fmt.Sprintf("ids=%d", len(q.IDs)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r, err := k.open().Search(context.Background(), q, func(Entry) error { return nil }); err != nil ||
					r.ReadRecords != many || r.Found != len(q.IDs) {
					b.Fatalf("%+v, %v", r, err)
				}
			}
		})
	}
}
