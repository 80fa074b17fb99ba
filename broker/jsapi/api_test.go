package jsapi

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

func TestAnswersOfLeaders(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc, ctx := s.Connect(), t.Context()
		l := Client{Conn: nc, API: "$JS.API"}
		if _, err := l.Message(ctx, "A", 1); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("no stream: got %v, want %v", err, jetstream.ErrStreamNotFound)
		}
		fill(t, s.JetStream(nc))
		m, err := l.Message(ctx, "A", 2)
		check(t, "message 2", m, err, 2, "a.2")
		m, err = l.Last(ctx, "A", "a.1")
		check(t, "the last message of a.1", m, err, 3, "a.1")
		m, err = l.Next(ctx, "A", 3, "a.>")
		check(t, "the next message from 3", m, err, 3, "a.1")
		_, err = l.Next(ctx, "A", 5, "a.>")
		wantNotFound(t, "the next message after the end", err)
		_, err = l.Last(ctx, "A", "a.9")
		wantNotFound(t, "the last message of an unused subject", err)
	})
}

// fill creates the stream A, with four messages.
func fill(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "A", Subjects: []string{"a.>"}}); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"a.1", "a.2", "a.1", "a.3"} {
		if _, err := js.PublishMsg(t.Context(),
			&nats.Msg{Subject: subject, Data: []byte("x"), Header: nats.Header{"K": {subject}}}); err != nil {
			t.Fatal(err)
		}
	}
}

func check(t *testing.T, what string, m Message, err error, sequence uint64, subject string) {
	t.Helper()
	h, headerErr := m.Header()
	if err != nil || headerErr != nil || m.Sequence != sequence || m.Subject != subject || string(m.Data) != "x" ||
		h.Get("K") != subject || m.Time.IsZero() {
		t.Errorf("%s: got %+v, %v, want %d on %s", what, m, err, sequence, subject)
	}
}

func wantNotFound(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("%s: got %v, want jetstream.ErrMsgNotFound", what, err)
	}
}

// TestRemovals: a delete or purge removes its messages, and no other messages.
func TestRemovals(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		js, ctx := s.JetStream(nc), t.Context()
		l := Client{Conn: nc, API: "$JS.API"}
		fill(t, js)
		if err := l.Delete(ctx, "A", 2); err != nil {
			t.Errorf("delete: %v", err)
		}
		wantNotFound(t, "delete message 2 again", l.Delete(ctx, "A", 2))
		wantNotFound(t, "delete a message that never existed", l.Delete(ctx, "A", 99))
		_, err := l.Message(ctx, "A", 2)
		wantNotFound(t, "read a deleted message", err)
		for below := range uint64(2) { // must remove no message
			if err := l.PurgeBelow(ctx, "A", "", below); err != nil {
				t.Errorf("purge below %d: %v", below, err)
			}
			if st, err := js.Stream(ctx, "A"); err != nil || st.CachedInfo().State.Msgs != 3 {
				t.Errorf("purged below %d: %+v, %v, want 3 messages", below, st.CachedInfo().State, err)
			}
		}
		if err := l.PurgeBelow(ctx, "A", "", 3); err != nil {
			t.Errorf("purge: %v", err)
		}
		_, err = l.Message(ctx, "A", 1)
		wantNotFound(t, "read a purged message", err)
		if err := l.PurgeBelow(ctx, "A", "a.3", 100); err != nil {
			t.Errorf("purge a subject: %v", err)
		}
		m, err := l.Next(ctx, "A", 1, "a.>")
		check(t, "the remaining message", m, err, 3, "a.1")
		_, err = l.Next(ctx, "A", 4, "a.>")
		wantNotFound(t, "read the purged subject", err)
		var refusal *jetstream.APIError
		if err := l.Ask(ctx, "STREAM.MSG.GET.A", map[string]int{"seq": 0}, nil); !errors.As(err, &refusal) {
			t.Errorf("a bad request: got %v, want the server's error", err)
		}
	})
}

// TestAnswerToAnotherRequest: a client can have answers to its own requests delivered to our inbox. Purge does not
// accept the acknowledgement of a publish, and Message does not accept another message.
func TestAnswerToAnotherRequest(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc, ctx := s.Connect(), t.Context()
		for subject, answer := range map[string]string{
			"fake.STREAM.PURGE.A": `{"stream":"A","seq":1}`,
			"fake.STREAM.MSG.GET.A": `{"type":"io.nats.jetstream.api.v1.stream_msg_get_response",` +
				`"message":{"subject":"a","seq":8}}`,
		} {
			if _, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(answer)) }); err != nil {
				t.Fatal(err)
			}
		}
		l := Client{Conn: nc, API: "fake"}
		if err := l.PurgeBelow(ctx, "A", "", 7); !errors.Is(err, ErrWrongAnswer) {
			t.Errorf("a purge: got %v, want %v", err, ErrWrongAnswer)
		}
		if m, err := l.Message(ctx, "A", 7); !errors.Is(err, ErrWrongAnswer) {
			t.Errorf("message 7: got %+v, %v, want %v", m, err, ErrWrongAnswer)
		}
	})
}
