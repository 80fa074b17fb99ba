package store

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/test/natstest"
)

// TestUnansweredIsInDoubt: the answer to a request's entry is lost, and then the entry of another client is the last
// one. No entry shows whether the request's entry was stored earlier, so the outcome is unknown. If the stream has
// refused the request's entry, it was certainly not stored, so the outcome is a conflict.
func TestUnansweredIsInDoubt(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, on *natstest.Server) {
		timers, js := newTimers(t, on)
		for key, tt := range map[string]struct {
			reply jsapi.Reply
			want  timer.Outcome
		}{
			"lost":    {jsapi.Reply{Err: errors.New("no answer in time")}, timer.Unknown},
			"refused": {jsapi.Reply{Ack: jsapi.Ack{Status: 400, Code: jsapi.CodeWrongLast}}, timer.Conflict},
		} {
			timers.Publish = func(ctx context.Context, m *nats.Msg) jsapi.Reply { // stores another client's set in its place
				other := &nats.Msg{Subject: m.Subject, Header: nats.Header{message.HeaderFor: {"2h"}}}
				if _, err := js.PublishMsg(ctx, other); err != nil {
					t.Error(err)
				}
				return tt.reply
			}
			got, err := timers.Do(t.Context(), Change{
				Request: timer.Request{Verb: timer.Set, Conditional: true}, Key: key, Target: "orders.x",
				Header: message.Header{message.HeaderFor: {"1h"}},
			})
			if err != nil || got.Outcome != tt.want {
				t.Errorf("the answer is %s: got %+v, %v, want %s", key, got, err, tt.want)
			}
		}
	})
}
