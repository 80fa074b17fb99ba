package pause

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

const (
	secretA = "the first secret of the tests"
	secretB = "the second secret of the tests"
)

// withSecrets returns the store with these secrets.
func (s Store) withSecrets(secrets ...string) Store {
	s.Keys = message.NewKeys(secrets)
	return s
}

// startKeeper returns a keeper that has just started.
func startKeeper(t *testing.T, s Store) *Keeper {
	t.Helper()
	k := NewKeeper(Config{
		Store: s, Log: slog.New(slog.DiscardHandler), Count: func(context.Context) (uint64, error) { return 1, nil },
		Apply: func(context.Context, *List) {},
	})
	k.Load(context.Background())
	return k
}

func patternsOf(t *testing.T, s Store) []string {
	t.Helper()
	read, err := s.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return read.List.Patterns()
}

// TestRecordOutlivesItsKey: an instance whose first key differs from the record's key stores the same list again, so
// that the list survives the removal of the record's key. Instances with different first keys do so at most once in
// each idleInterval.
func TestRecordOutlivesItsKey(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		store, _ := newStore(t, s)
		a, ab, ba, b := store.withSecrets(secretA), store.withSecrets(secretA, secretB),
			store.withSecrets(secretB, secretA), store.withSecrets(secretB)
		l := must(t)((*List)(nil).Pause("q.>", Hours{}, time.Now()))
		if _, err := a.Write(context.Background(), l, readResult{}); err != nil {
			t.Fatal(err)
		}
		before := startKeeper(t, ab)
		if got := patternsOf(t, b); len(got) > 0 {
			t.Errorf("with the old key first, the list is sealed with the new key: %q", got)
		}
		after := startKeeper(t, ba)
		if got := patternsOf(t, b); !slices.Equal(got, []string{"q.>"}) {
			t.Errorf("with only the new key, %q is paused, want q.>", got)
		}
		if got := after.List(); got.Version != l.Version+1 || !slices.Equal(got.Pauses, l.storedAt(time.Now()).Pauses) {
			t.Errorf("the list is %+v, want the same pauses in the next version", got)
		}
		for range 12 { // two minutes
			for _, k := range []*Keeper{before, after} {
				if err := k.read(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(pausedInterval)
		}
		if got := after.List().Version - l.Version; got > 2 {
			t.Errorf("two instances with different first keys have stored %d versions in two minutes, want one each", got)
		}
	})
}

// TestUnopenedRecordPauses: if the key of the only list is unknown, an instance that starts pauses all targets of that
// list, and stores them in a new list. If there is a list with a known key, a list with an unknown key has no effect.
func TestUnopenedRecordPauses(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		store, js := newStore(t, s)
		a, b := store.withSecrets(secretA), store.withSecrets(secretB)
		ctx := context.Background()
		put := func(l *List, header nats.Header) {
			t.Helper()
			r := a.Seal(l)
			header[message.HeaderSeal] = []string{r.Seal}
			if _, err := js.PublishMsg(ctx, &nats.Msg{Subject: "delaysys.pauses", Header: header, Data: r.Body}); err != nil {
				t.Fatal(err)
			}
		}
		forged := must(t)((*List)(nil).Pause("victim.>", Hours{}, time.Now()))
		put(forged, nats.Header{"Nats-Stream": {"X"}}) // like a direct-get answer of the server
		if k := startKeeper(t, b); len(k.List().Present()) > 0 {
			t.Errorf("a server's answer under an unknown key pauses %q, want none", k.List().Patterns())
		}
		put(forged, nats.Header{})
		if k := startKeeper(t, b); len(k.List().Present()) > 0 {
			t.Errorf("beside a list with a known key, a list with an unknown key pauses %q, want none", k.List().Patterns())
		}
		if err := js.DeleteStream(ctx, "DELAY_PAUSED"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the server removes the files of a stream after its answer
		if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
			Name: "DELAY_PAUSED", Subjects: []string{"delaysys.paused.>", "delaysys.pauses"},
		}); err != nil {
			t.Fatal(err)
		}
		l := must(t)((*List)(nil).Pause("q.>", Hours{}, time.Now()))
		l = must(t)(l.Pause("r.>", Hours{}, time.Now()))
		l = must(t)(l.Resume("r.>", time.Now()))
		put(l, nats.Header{})
		bad := must(t)((*List)(nil).Pause("*.x", Hours{}, time.Now()))
		bad.Pauses[0].ID = "a.>"
		put(bad, nats.Header{})
		k := startKeeper(t, b)
		want := slices.Clone(l.Pauses)
		for i := range want {
			want[i].State, want[i].Unproven = Paused, true
		}
		if got := k.List().Present(); !slices.Equal(got, want) {
			t.Fatalf("the instance pauses %+v, want %+v", got, want)
		}
		if got := patternsOf(t, b); !slices.Equal(got, []string{"q.>", "r.>"}) {
			t.Errorf("the stored list pauses %q, want q.> and r.>", got)
		}
		confirmed := must(t)(k.List().Pause("q.>", Hours{}, time.Now()))
		if p := confirmed.Pauses[0]; p.Unproven || !p.Since.Equal(l.Pauses[0].Since) {
			t.Errorf("paused again by an operator: %+v, want it proven, and since the same time", p)
		}
	})
}
