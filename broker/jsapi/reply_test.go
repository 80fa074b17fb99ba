package jsapi

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestOutcome(t *testing.T) {
	reply := func(body string) *nats.Msg { return &nats.Msg{Data: []byte(body)} }
	refusal := func(code string) *nats.Msg {
		return reply(`{"stream":"S","error":{"code":400,"err_code":` + code + `,"description":"no"}}`)
	}
	for _, tt := range []struct {
		name      string
		answer    *nats.Msg
		err       error
		want      Outcome
		notStored bool
		full      bool // a limit of the stream, the account or the server is reached
		foreign   bool
	}{
		{name: "stored", answer: reply(`{"stream":"S","seq":7}`), want: Stored},
		{name: "another stream's answer", answer: reply(`{"stream":"OTHER","seq":7}`), foreign: true},
		{name: "duplicate", answer: reply(`{"stream":"S","seq":7,"duplicate":true}`), want: Duplicate},
		{name: "conflict", answer: refusal("10071"), want: Conflict, notStored: true},
		{name: "another message of the subject is being stored", answer: refusal("10164"), want: Undecided, notStored: true},
		{name: "another message with the id is being stored", answer: refusal("10158"), want: Busy},
		{name: "too many publishes wait", answer: refusal("10167"), want: Busy},
		{name: "stream full", answer: refusal("10077"), want: StreamFull, notStored: true, full: true},
		{name: "account full", answer: refusal("10002"), want: LimitReached, notStored: true, full: true},
		{name: "server full", answer: refusal("10023"), want: LimitReached, notStored: true, full: true},
		{name: "memory full", answer: refusal("10028"), want: LimitReached, notStored: true, full: true},
		{name: "storage full", answer: refusal("10047"), want: LimitReached, notStored: true, full: true},
		{name: "too large for the stream", answer: refusal("10054"), want: TooLarge, notStored: true},
		{name: "too large for the server", err: nats.ErrMaxPayload, want: TooLarge, notStored: true},
		{name: "nobody listens", err: nats.ErrNoResponders, want: Unavailable, notStored: true},
		{
			name: "nobody listens, by a status", want: Unavailable, notStored: true,
			answer: &nats.Msg{Header: nats.Header{"Status": {"503"}}},
		},
		{name: "sealed", answer: refusal("10109"), want: Rejected, notStored: true},
		{name: "no answer", err: context.DeadlineExceeded, want: Unknown},
		{name: "an answer of a service", answer: reply(`{"error":{"code":400}}`), foreign: true},
	} {
		r, ok := ReplyOf(tt.answer, tt.err, "S")
		if ok == tt.foreign {
			t.Errorf("%s: got ok %t, want %t", tt.name, ok, !tt.foreign)
		}
		if tt.foreign {
			continue
		}
		got := r.Outcome()
		if got != tt.want || got.NotStored() != tt.notStored || got.Full() != tt.full {
			t.Errorf("%s: got outcome %d, not stored %t, full %t; want %d, %t, %t", tt.name, got, got.NotStored(), got.Full(),
				tt.want, tt.notStored, tt.full)
		}
		if stored := got == Stored || got == Duplicate; (r.Failure() == nil) != stored {
			t.Errorf("%s: got the failure %v, want none only for a stored message", tt.name, r.Failure())
		}
		if tt.want == Unknown && !errors.Is(r.Failure(), tt.err) {
			t.Errorf("%s: got the failure %v, want %v", tt.name, r.Failure(), tt.err)
		}
	}
}
