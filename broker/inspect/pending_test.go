package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// list requests one page.
func list(t *testing.T, i *Inspector, query PendingQuery) PendingList {
	t.Helper()
	query.Limit, query.MaxRead = cmp.Or(query.Limit, 1000), cmp.Or(query.MaxRead, 100_000)
	l, err := i.Pending(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pages lists all messages page by page. It calls afterPage after each page except the last.
func pages(t *testing.T, i *Inspector, query PendingQuery, afterPage func()) (all []PendingMessage) {
	t.Helper()
	for {
		l := list(t, i, query)
		all = append(all, l.Messages...)
		if !l.More {
			return all
		}
		var err error
		if query.Cursor, err = ParseCursor(l.Cursor); err != nil {
			t.Fatal(err)
		}
		afterPage()
	}
}

// fromNow returns a bound at a duration from now.
func fromNow(d time.Duration) Bound { return Bound{Offset: &d} }

func TestParseBound(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "10m": now.Add(10 * time.Minute), "2026-12-24T18:00:00+01:00": time.Date(2026, 12, 24, 17, 0, 0, 0, time.UTC),
	} {
		if b, err := ParseBound(text); err != nil || !b.Time(now).Equal(want) {
			t.Errorf("%q: got %s, %v, want %s", text, b.Time(now), err, want)
		}
	}
	for _, text := range []string{"soon", "-10m", "2026-12-24T18:00:00", "2026-12-24"} {
		if _, err := ParseBound(text); !errors.Is(err, errBound) {
			t.Errorf("%q: got %v, want %v", text, err, errBound)
		}
	}
}

// pendingWorld stores clients' messages, hops, refused and resent messages, some minutes apart.
func pendingWorld(t *testing.T, s *natstest.Server) (i *Inspector, stored int) {
	cfg := configOf(t, "", "1s 10m 1h 1d")
	createStreams(t, s, cfg)
	i = open(t, s, cfg, "")
	rng := rand.New(rand.NewPCG(11, 11))
	const rounds = 40
	atOneTime := fmt.Sprintf("delayat.%d.mill.i", time.Now().Add(5*time.Hour).Unix())
	for n := range uint64(rounds) {
		now := time.Now()
		later := func(d time.Duration) time.Time { return now.Add(d + time.Duration(rng.Int64N(int64(30*time.Hour)))) }
		storeAll(t, i,
			newMsg("delay.1d.shop.a"), newMsg("delay.1h.shop.b"), newMsg(fmt.Sprintf("delayin.%ds.mill.c", rng.IntN(100_000))),
			newMsg("delay.1h.shop.d", "Delay-Until", later(time.Hour).UTC().Format(time.RFC3339Nano)),
			newMsg(atOneTime), newMsg(atOneTime), newMsg(atOneTime),
			newHop(i, "10m", "shop.e", 10*n+1001, later(10*time.Minute)),
			newHop(i, "1d", "mill.f", 10*n+1002, later(24*time.Hour)))
		storeRetries(t, i, "5s", newRequest(10*n+3, "shop.g").WithRefusal(now, later(0), "no"), newRequest(10*n+4, "shop.h"))
		time.Sleep(time.Duration(rng.Int64N(int64(5 * time.Minute))))
	}
	return i, rounds * 11
}

// TestPendingInDueOrder: in many pages or in one, all messages of all lanes are listed by due time, each once.
func TestPendingInDueOrder(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		i, stored := pendingWorld(t, s)
		messages := pages(t, i, PendingQuery{}, func() {})
		ids := make(map[string]bool)
		for _, w := range messages {
			ids[w.ID] = true
		}
		if len(messages) != stored || len(ids) != stored {
			t.Fatalf("listed %d with %d ids, want %d", len(messages), len(ids), stored)
		}
		if !slices.IsSortedFunc(messages, func(a, b PendingMessage) int { return a.Due.Compare(b.Due) }) {
			t.Error("the messages are not in the order of their due times")
		}
		for _, limit := range []int{17, 100} {
			if paged := pages(t, i, PendingQuery{Limit: limit}, func() {}); !slices.Equal(paged, messages) {
				t.Errorf("in pages of %d: listed %d messages, want the list of one page", limit, len(paged))
			}
		}
	})
}

// TestPendingBetweenTwoTimes: with a range and a target, the list has only messages for the target that are due in the
// range. It does not read lanes in which no message can be due in the range.
func TestPendingBetweenTwoTimes(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		i, _ := pendingWorld(t, s)
		all := list(t, i, PendingQuery{})
		for _, tt := range []struct {
			target        string
			after, before Bound
		}{
			{"", fromNow(0), fromNow(3 * time.Hour)},
			{"", Bound{}, fromNow(0)},
			{"", fromNow(20 * time.Hour), Bound{}},
			{"", Bound{Instant: all.Time.Add(time.Hour)}, Bound{Instant: all.Time.Add(2 * time.Hour)}},
			{"mill.*", fromNow(5 * time.Hour), fromNow(20 * time.Hour)},
			{"shop.b", Bound{}, Bound{}},
			{"nobody.>", Bound{}, Bound{}},
		} {
			l := list(t, i, PendingQuery{Target: tt.target, MinDue: tt.after, MaxDue: tt.before})
			after, before := tt.after.Time(l.Time), tt.before.Time(l.Time)
			var want []PendingMessage
			for _, w := range all.Messages {
				if !w.Due.Before(after) && (before.IsZero() || w.Due.Before(before)) &&
					(tt.target == "" || message.Match(tt.target, w.Target)) {
					want = append(want, w)
				}
			}
			if !slices.Equal(l.Messages, want) || l.More {
				t.Errorf("%+v: %d listed, want %d", tt, len(l.Messages), len(want))
			}
		}
		soon := list(t, i, PendingQuery{MaxDue: fromNow(time.Minute)})
		if all.Read != uint64(len(all.Messages)) || soon.Read > all.Read-40 {
			t.Errorf("a list of the next minute read %d headers of %d, want at least 40 unread", soon.Read, all.Read)
		}
	})
}

// TestPendingIsBounded: a list reads at most MaxRead headers, and has only messages that no unread message can precede.
// The next query continues at the cursor.
func TestPendingIsBounded(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		i, stored := pendingWorld(t, s)
		all := list(t, i, PendingQuery{})
		first := list(t, i, PendingQuery{MaxRead: 20})
		if len(first.Messages) != 0 || !first.Truncated || !first.More || first.Cursor != "" || first.Read != 20 {
			t.Errorf("after 20 headers: %d listed, truncated is %v, cursor %q; want 0, true, no cursor", len(first.Messages),
				first.Truncated, first.Cursor)
		}
		second := list(t, i, PendingQuery{MaxRead: uint64(stored) - 60})
		n := len(second.Messages)
		if n == 0 || n == stored || !second.Truncated || !slices.Equal(second.Messages, all.Messages[:n]) {
			t.Errorf("after most headers: listed %d of %d, want the beginning of the complete list", n, stored)
		}
		cursor, err := ParseCursor(second.Cursor)
		if err != nil {
			t.Fatal(err)
		}
		rest := list(t, i, PendingQuery{Cursor: cursor})
		if !slices.Equal(rest.Messages, all.Messages[n:]) || rest.More || rest.Truncated {
			t.Errorf("from the cursor: listed %d, want %d", len(rest.Messages), stored-n)
		}
		if _, err := ParseCursor("DELAY_1h-1"); !errors.Is(err, errCursor) {
			t.Errorf("an invalid cursor: got %v, want %v", err, errCursor)
		}
		for _, stream := range []string{"DELAY_1d", "DELAY_10m", "DELAY_INTAKE"} {
			if count := consumersOf(t, i, stream); count != 0 {
				t.Errorf("%d consumers of %s remain, want none", count, stream)
			}
		}
	})
}

// TestPendingListsOnce: a message that moves to another lane during a page is read twice, and listed once.
func TestPendingListsOnce(t *testing.T) {
	m := merge{listed: make(map[string]bool)}
	for _, w := range []PendingMessage{{ID: "a", Stream: "DELAY_1h"}, {ID: "b"}, {ID: "a", Stream: "DELAY_10m"}} {
		m.list(w)
	}
	if got := m.result.Messages; len(got) != 2 || got[0].Stream != "DELAY_1h" || got[1].ID != "b" {
		t.Errorf("listed %+v, want a and b, each once", got)
	}
}

// TestPendingOfLateHops: if a hop is due more than maxLateArrival before it leaves its level, its position in the list
// is maxLateArrival before it leaves.
func TestPendingOfLateHops(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "", "1s 1h")
		createStreams(t, s, cfg)
		i := open(t, s, cfg, "")
		began := time.Now()
		storeAll(t, i, newMsg("delay.1h.shop.first"))
		time.Sleep(30 * time.Minute)
		storeAll(t, i, newMsg("delay.1h.shop.last"), newHop(i, "1h", "shop.late", 1, began.Add(40*time.Minute)))
		var got []string
		for _, w := range pages(t, i, PendingQuery{Limit: 1}, func() {}) {
			got = append(got, w.Target)
		}
		if want := "shop.first shop.late shop.last"; strings.Join(got, " ") != want {
			t.Errorf("listed %s, want %s", got, want)
		}
	})
}
