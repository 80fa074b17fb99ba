package lease

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/test/natstest"
)

// TestStaleAnswer: an instance does not trust a server that does not show a stored message.
func TestStaleAnswer(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := NewShared(SharedConfig{Conn: s.Connect(), APIPrefix: "$JS.API", Subjects: meeting,
			Log: slog.New(slog.DiscardHandler)})
		seq, err := a.store.put(context.Background(), meeting.Beat+"x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.store.checkFresh(context.Background(), seq+1); !errors.Is(err, errStale) {
			t.Errorf("got %v, want errStale", err)
		}
		if err := a.store.checkFresh(context.Background(), seq); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

// TestSwapIsConditional: a table is replaced only by an instance that has read it.
func TestSwapIsConditional(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		nc := s.Connect()
		ctx, b := context.Background(), store{conn: nc, api: jsapi.Client{Conn: nc, API: "$JS.API"}, Subjects: meeting}
		first, err := b.swap(ctx, meeting.Table, []byte("a"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.swap(ctx, meeting.Table, []byte("b"), 0); !errors.Is(err, errConflict) {
			t.Errorf("a second first one: got %v, want errConflict", err)
		}
		if _, err := b.swap(ctx, meeting.Table, []byte("c"), first); err != nil {
			t.Errorf("a swap after reading: got %v", err)
		}
		if _, err := b.swap(ctx, meeting.Table, []byte("d"), first); !errors.Is(err, errConflict) {
			t.Errorf("a swap after reading an older table: got %v, want errConflict", err)
		}
	})
}

// TestAnotherStreamsAcknowledgement: an acknowledgement by another stream does not count as a successful write.
func TestAnotherStreamsAcknowledgement(t *testing.T) {
	meet(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		nc := s.Connect()
		if _, err := nc.Subscribe("fake", func(m *nats.Msg) { _ = m.Respond([]byte(acknowledgement)) }); err != nil {
			t.Fatal(err)
		}
		b := store{conn: nc, api: jsapi.Client{Conn: nc, API: "$JS.API"}, Subjects: meeting}
		if seq, err := b.put(context.Background(), "fake", nil); err == nil {
			t.Errorf("stored at %d, by another stream's word", seq)
		}
	})
}
