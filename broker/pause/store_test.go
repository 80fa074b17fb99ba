package pause

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// newStore creates the stream, and returns a store with a secret.
func newStore(t *testing.T, s *natstest.Server) (Store, jetstream.JetStream) {
	t.Helper()
	names, err := message.NewNames("delay")
	if err != nil {
		t.Fatal(err)
	}
	nc := s.Connect()
	js := s.JetStream(nc)
	if _, err := js.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: names.PausedStream(), Subjects: []string{names.PausedStreamFilter(), names.PausesRecord()},
	}); err != nil {
		t.Fatal(err)
	}
	keys := message.NewKeys([]string{"a secret of sixteen bytes"})
	return Store{Conn: nc, API: "$JS.API", Names: names, Keys: keys}, js
}

// TestRecordAmongForgeries: Read returns the newest record with a valid seal, even if clients have stored messages
// after that record. Write fails if the subject has changed since Read.
func TestRecordAmongForgeries(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		store, js := newStore(t, s)
		ctx, ok := context.Background(), must(t)
		put := func(header nats.Header, body []byte) {
			t.Helper()
			if _, err := js.PublishMsg(ctx, &nats.Msg{Subject: "delaysys.pauses", Header: header, Data: body}); err != nil {
				t.Fatal(err)
			}
		}
		empty, err := store.Read(ctx)
		if err != nil || empty.List != nil {
			t.Fatalf("without a record: got %+v, %v, want no list", empty, err)
		}
		var none *List
		first := ok(none.Pause("a.>", Hours{}, time.Now()))
		if _, err := store.Write(ctx, first, empty); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Write(ctx, first, empty); !errors.Is(err, ErrConflict) {
			t.Errorf("written after an outdated read: got %v, want %v", err, ErrConflict)
		}
		read, err := store.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		second := ok(first.Pause("b.>", Hours{}, time.Now()))
		if _, err := store.Write(ctx, second, read); err != nil {
			t.Fatal(err)
		}
		old := store.Seal(first)
		put(nats.Header{message.HeaderSeal: {old.Seal}}, old.Body)                                      // an earlier record
		put(nats.Header{message.HeaderSeal: {old.Seal}}, ok(second.Resume("a.>", time.Now())).encode()) // another seal
		put(nil, ok(second.Resume("b.>", time.Now())).encode())                                         // without a seal
		for range maxForeign {
			put(nil, []byte(`{"stream":"DELAY_1m","seq":7}`))
		}
		if read, err = store.Read(ctx); err != nil || read.List == nil || read.List.Version != second.Version ||
			!read.untidy() {
			t.Fatalf("after forgeries: got %+v, %v, want the second list", read, err)
		}
		if err := store.tidy(ctx, read); err != nil {
			t.Fatal(err)
		}
		st, err := js.Stream(ctx, "DELAY_PAUSED")
		if err != nil || st.CachedInfo().State.Msgs != 1 {
			t.Errorf("after Tidy: got %+v, %v, want only the record", st.CachedInfo().State, err)
		}
		if read, err = store.Read(ctx); err != nil || read.List == nil || read.List.Version != second.Version {
			t.Errorf("after Tidy: got %+v, %v, want the second list", read, err)
		}
	})
}

// TestKeeper: a keeper accepts only sealed and newer lists from announcements, and writes a removed list back. It
// reports a version only after it has applied the version.
func TestKeeper(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		store, js := newStore(t, s)
		apply := make(chan struct{})
		k := NewKeeper(Config{
			Store: store, Log: slog.New(slog.DiscardHandler), Count: func(context.Context) (uint64, error) { return 8, nil },
			Apply: func(context.Context, *List) { <-apply },
		})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var running sync.WaitGroup
		k.Load(ctx)
		running.Go(func() { k.Run(ctx) })
		var none *List
		l := must(t)(none.Pause("a.>", Hours{}, time.Now()))
		forged := store.Seal(l)
		forged.Seal = "x" + forged.Seal[1:]
		k.Receive(forged)
		k.Receive(Record{Body: l.encode()})
		if k.List() != nil {
			t.Fatalf("the keeper has accepted the forged list %+v", k.List())
		}
		k.Receive(store.Seal(l))
		synctest.Wait()
		if k.ListAt(time.Now()) == nil || k.AppliedVersion() != 0 {
			t.Errorf("announced: list %+v, applied %d, want a list that is not yet applied", k.List(), k.AppliedVersion())
		}
		apply <- struct{}{}
		time.Sleep(pausedInterval)
		synctest.Wait()
		if k.AppliedVersion() != l.Version || k.ParkedMessages() != 7 {
			t.Errorf("applied %d, %d messages wait, want %d and 7", k.AppliedVersion(), k.ParkedMessages(), l.Version)
		}
		st, err := js.Stream(ctx, "DELAY_PAUSED")
		if err == nil {
			err = st.Purge(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(pausedInterval)
		synctest.Wait()
		if read, err := store.Read(ctx); err != nil || read.List == nil || read.List.Version != l.Version {
			t.Errorf("after a purge: got %+v, %v, want the list written back", read, err)
		}
		closing := l.Set(l.Pauses[0].ID, Closing, time.Now())
		k.Receive(store.Seal(closing))
		k.Receive(store.Seal(l))
		for at, want := range map[time.Time]State{
			time.Now(): Closing, time.Now().Add(MaxClosing + 1): Resuming,
		} {
			if _, state := k.ListAt(at).PauseOf("a.b", ""); state != want {
				t.Errorf("at %s the pause is %s, want %s", at, state, want)
			}
		}
		close(apply)
		cancel()
		running.Wait()
	})
}

// TestUnstoredListYields: the owner of the lanes could not store a change. Meanwhile, an operator whose clock is behind
// has paused another pattern, in a list with a lower version. The owner takes over the operator's list, and does not
// write its own list over it. Until then, it does not follow the operator's list.
func TestUnstoredListYields(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		store, js := newStore(t, s)
		ctx, ok := context.Background(), must(t)
		time.Sleep(time.Hour)
		behind := time.Now().Add(-time.Minute) // the operator's clock
		var none *List
		first := ok(ok(none.Pause("a.>", Hours{}, behind)).Resume("a.>", behind))
		_, err := store.Write(ctx, first, readResult{})
		natstest.NoError(t, err)
		k := startKeeper(t, store)
		limit := func(n int64) {
			cfg := jetstream.StreamConfig{Name: "DELAY_PAUSED", MaxMsgs: n, Discard: jetstream.DiscardNew,
				Subjects: []string{store.Names.PausedStreamFilter(), store.Names.PausesRecord()}}
			_, err := js.UpdateStream(ctx, cfg)
			natstest.NoError(t, err)
		}
		limit(1)
		k.SetState(ctx, first.Pauses[0].ID, Resuming, Closing)
		limit(-1)
		if p := k.List().Pauses[0]; p.State != Closing {
			t.Fatalf("the pause is %s, want closing: the stream is full, and the lane must drain", p.State)
		}
		before, err := store.Read(ctx)
		natstest.NoError(t, err)
		paused := ok(before.List.Pause("b.>", Hours{}, behind))
		_, err = store.Write(ctx, paused, before)
		natstest.NoError(t, err)
		k.Receive(store.Seal(paused))
		if paused.Version >= k.List().Version || k.List().Follows(paused, "b.>") {
			t.Fatalf("the owner has %+v, want a list that has a higher version than %d and does not pause b.>", k.List(),
				paused.Version)
		}
		natstest.NoError(t, k.read(ctx))
		after, err := store.Read(ctx)
		natstest.NoError(t, err)
		if !after.List.Stops("b.x") || !k.List().Stops("b.x") || !k.List().Follows(paused, "b.>") {
			t.Errorf("the record is %+v and the owner has %+v, want b.> paused", after.List, k.List())
		}
	})
}

// TestStoredTime: each state has the time at which the stream stored the list in which it began. Other changes keep
// that time, also changes by a writer whose clock is wrong.
func TestStoredTime(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		store, _ := newStore(t, s)
		ctx, ok := context.Background(), must(t)
		k := startKeeper(t, store)
		start := time.Now()
		wrong := start.Add(48 * time.Hour)
		change := func(f func(*List) (*List, error)) *List {
			t.Helper()
			read, err := store.Read(ctx)
			natstest.NoError(t, err)
			next := ok(f(read.List))
			_, err = store.Write(ctx, next, read)
			natstest.NoError(t, err)
			k.Receive(store.Seal(next))
			natstest.NoError(t, k.read(ctx))
			time.Sleep(time.Hour)
			return next
		}
		change(func(l *List) (*List, error) { return l.Pause("a.>", Hours{}, wrong) })
		change(func(l *List) (*List, error) { return l.Pause("b.>", Hours{}, wrong) })
		change(func(l *List) (*List, error) { return l.Resume("a.>", wrong) })
		change(func(l *List) (*List, error) { return l.Pause("c.>", Hours{}, wrong) })
		for pattern, want := range map[string]time.Duration{"a.>": 2 * time.Hour, "b.>": time.Hour, "c.>": 3 * time.Hour} {
			for _, p := range k.List().Pauses {
				if got := p.Stored.Sub(start); p.Pattern == pattern && got != want {
					t.Errorf("%s: the state began after %s, want %s", pattern, got, want)
				}
			}
		}
	})
}

// TestUnreadRecord: a keeper that could not read the record at its start reads the record as soon as that is possible,
// even if nobody calls Refresh.
func TestUnreadRecord(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		store, js := newStore(t, s)
		l := must(t)((*List)(nil).Pause("a.>", Hours{}, time.Now()))
		if _, err := store.Write(t.Context(), l, readResult{}); err != nil {
			t.Fatal(err)
		}
		s.Stop()
		k := startKeeper(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { k.Run(ctx) })
		time.Sleep(time.Minute)
		s.Start()
		for !js.Conn().IsConnected() {
			time.Sleep(time.Second)
		}
		time.Sleep(jsapi.Timeout + busyInterval) // a request that was sent without a connection has failed
		synctest.Wait()
		if got := k.List().Patterns(); !slices.Equal(got, []string{"a.>"}) {
			t.Errorf("the paused patterns are %v, want a.>", got)
		}
		cancel()
		running.Wait()
	})
}
