package journal

import (
	"context"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestNewerBatchesAreAHole: batches of a newer broker cannot be parsed, and are reported as a hole.
func TestNewerBatchesAreAHole(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		k.store([]byte(`{"v":2,"b":"newer"}`))
		if _, r := k.search(Query{}); len(r.Holes) != 1 || !strings.Contains(r.Holes[0].Reason, "newer") {
			t.Errorf("holes %+v, want one, which names the newer broker", r.Holes)
		}
	})
}

// TestUnsealedBatch: with a secret, a batch without a seal does not count, even if messages between lanes count without
// a seal during an upgrade. Every version with a journal seals its batches. Without a secret, all batches count.
func TestUnsealedBatch(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		for _, secrets := range [][]string{{"a secret of sixteen"}, nil} {
			k.policy.Keys = message.NewKeys(secrets, time.Time{})
			body := batch{}.body(head{Instance: "kitchen", Start: "1", Number: 1}, nil)
			if _, err := k.js.Publish(context.Background(), k.policy.Names.JournalSubject(), body); err != nil {
				t.Fatal(err)
			}
			if _, r := k.search(Query{}); (r.UnprovenMessages > 0) != (secrets != nil) {
				t.Errorf("with the secrets %q: %d batches do not count, want some only with a secret", secrets, r.UnprovenMessages)
			}
		}
	})
}

// TestLateCopyOfBatch: a search recognizes the late copy of a batch that is older than the interval of the search.
func TestLateCopyOfBatch(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		old := record(1)
		for n := range uint64(70) {
			if n == 0 || n == 60 {
				k.put(head{Instance: "cellar", Start: "1", Number: 1}, old)
			}
			k.put(head{Instance: "kitchen", Start: "2", Number: n + 1, Previous: n})
			time.Sleep(time.Minute)
		}
		if _, r := k.search(Query{Since: time.Now().Add(-20 * time.Minute)}); r.Duplicates != 1 || !r.Complete() {
			t.Errorf("%d copies, holes %+v, want one copy and no hole", r.Duplicates, r.Holes)
		}
	})
}

// TestHoleBeforeInterval: if an instance was killed shortly before the interval of the query, records may be missing in
// the interval.
func TestHoleBeforeInterval(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.create()
		for n := range uint64(20) {
			if n <= 10 {
				k.put(head{Instance: "cellar", Start: "1", Number: n + 1, Previous: n})
			}
			k.put(head{Instance: "kitchen", Start: "2", Number: n + 1, Previous: n})
			time.Sleep(time.Minute)
		}
		killed := time.Now().Add(-10 * time.Minute)
		for after, want := range map[time.Duration]int{30 * time.Second: 1, 61 * time.Second: 0, -time.Minute: 1} {
			if _, r := k.search(Query{Since: killed.Add(after)}); len(r.Holes) != want {
				t.Errorf("since %s after it was killed: holes %+v, want %d", after, r.Holes, want)
			}
		}
	})
}
