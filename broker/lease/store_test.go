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

// TestStaleAnswer: checkFresh returns errStale if the server does not show the message with the given sequence.
func TestStaleAnswer(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		a := NewShared(SharedConfig{Conn: s.Connect(), APIPrefix: "$JS.API", Subjects: testSubjects,
			Log: slog.New(slog.DiscardHandler)})
		seq, err := a.store.put(context.Background(), testSubjects.Beat+"x", nil)
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

// TestSwapIsConditional: swap replaces the last message of a subject only if it has the given sequence.
func TestSwapIsConditional(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		nc := s.Connect()
		ctx, b := context.Background(), store{conn: nc, api: jsapi.Client{Conn: nc, API: "$JS.API"}, Subjects: testSubjects}
		first, err := b.swap(ctx, testSubjects.Table, []byte("a"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.swap(ctx, testSubjects.Table, []byte("b"), 0); !errors.Is(err, errConflict) {
			t.Errorf("a swap of no message, after the first: got %v, want errConflict", err)
		}
		if _, err := b.swap(ctx, testSubjects.Table, []byte("c"), first); err != nil {
			t.Errorf("a swap of the last message: got %v, want nil", err)
		}
		if _, err := b.swap(ctx, testSubjects.Table, []byte("d"), first); !errors.Is(err, errConflict) {
			t.Errorf("a swap of an older message: got %v, want errConflict", err)
		}
	})
}

// TestAnotherStreamsAcknowledgement: put returns an error if another stream acknowledges the write.
func TestAnotherStreamsAcknowledgement(t *testing.T) {
	withStream(t, func(t *testing.T, s *natstest.Server, _ jetstream.JetStream) {
		nc := s.Connect()
		if _, err := nc.Subscribe("fake", func(m *nats.Msg) { _ = m.Respond([]byte(acknowledgement)) }); err != nil {
			t.Fatal(err)
		}
		b := store{conn: nc, api: jsapi.Client{Conn: nc, API: "$JS.API"}, Subjects: testSubjects}
		if seq, err := b.put(context.Background(), "fake", nil); err == nil {
			t.Errorf("put returned the sequence %d of another stream, want an error", seq)
		}
	})
}
