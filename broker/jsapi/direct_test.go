package jsapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestDirect: LastOfEach and FirstOf return the messages that the leader has, without the headers that the server adds.
func TestDirect(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc, ctx := s.Connect(), t.Context()
		js, l := s.JetStream(nc), Client{Conn: nc, API: "$JS.API"}
		directStreamA(t, js, true)
		found, err := l.LastOfEach(ctx, "A", []string{"a.1", "a.2", "a.9"}, 1<<20)
		if err != nil || len(found) != 2 || found[0].Sequence != 2 || found[1].Sequence != 3 {
			t.Errorf("the last message of each subject: %+v, %v; want 2 and 3", found, err)
		}
		for _, in := range found {
			m, err := l.Message(ctx, "A", in.Sequence)
			want := m.Incoming("A")
			if err != nil || !in.At.Equal(want.At) || in.Subject != want.Subject || string(in.Data) != string(want.Data) ||
				!maps.EqualFunc(in.Header, want.Header, func(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
				t.Errorf("message %d: got %+v; the leader has %+v, %v", in.Sequence, in, want, err)
			}
		}
		if found, err := l.LastOfEach(ctx, "A", []string{"a.9"}, 1<<20); err != nil || len(found) != 0 {
			t.Errorf("an unused subject: %+v, %v; want no message and no error", found, err)
		}
		if first, err := l.FirstOf(ctx, "A", "a.1", 1); err != nil || first.Sequence != 1 {
			t.Errorf("the first message of a.1: %+v, %v; want 1", first, err)
		}
		_, err = l.FirstOf(ctx, "A", "a.9", 1)
		wantNotFound(t, "the first message of an unused subject", err)
	})
}

// directStreamA creates the stream A, with three messages. Two of them have headers with the names that the server uses
// in an answer, for a stored message and for the end.
func directStreamA(t *testing.T, js jetstream.JetStream, direct bool) {
	t.Helper()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "A", Subjects: []string{"a.>"}, AllowDirect: direct,
	}); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*nats.Msg{
		{Subject: "a.1", Data: []byte("first")},
		{Subject: "a.2", Header: nats.Header{"Status": {"503"}}},
		{Subject: "a.1", Data: []byte("x"), Header: nats.Header{
			"Nats-Sequence": {"77"}, "Nats-Stream": {"B"}, "Nats-Subject": {"a.2"}, "Status": {"204"},
			"Nats-Time-Stamp": {time.Unix(0, 0).UTC().Format(time.RFC3339Nano)}, "Nats-Num-Pending": {"0"}, "K": {"v"},
		}},
	} {
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoDirect: LastOfEach fails if the stream does not allow direct gets, and if no answer comes before ctx ends.
func TestNoDirect(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		l := Client{Conn: nc, API: "$JS.API"}
		directStreamA(t, s.JetStream(nc), false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if found, err := l.LastOfEach(ctx, "A", []string{"a.1"}, 1<<20); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("not allowed: %+v, %v; want %v", found, err, nats.ErrNoResponders)
		}
		l.API = "nobody"
		if _, err := nc.Subscribe("nobody.>", func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
		if found, err := l.LastOfEach(ctx, "A", []string{"a.1"}, 1<<20); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no answer: %+v, %v; want %v", found, err, context.DeadlineExceeded)
		}
	})
}
