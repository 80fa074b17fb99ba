package deliver

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

const (
	replyTimeout = 10 * time.Second
	silence      = 50 * time.Millisecond // the time until a missing answer counts as silence
	timedOut     = "unknown: no answer in time"
)

func TestStreamTarget(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
		for _, mode := range []message.Mode{"", message.ModeAuto, message.ModeStream, message.ModeCore} {
			k.send("orders.a", mode).check(t, 0, "delivered")
		}
		if got := k.stored("ORDERS"); got != 4 {
			t.Errorf("%d stored, want 4", got)
		}
	})
}

// TestCoreTarget: in mode auto, silence counts as a delivery after a list of streams has shown that no stream listens.
// Mode core does not wait for the list.
func TestCoreTarget(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		seen := k.subscribe("ui.>", nil)
		k.send("ui.a", message.ModeAuto).check(t, 2*silence, "delivered") // the first silence causes the list
		k.send("ui.a", message.ModeAuto).check(t, silence, "delivered")
		k.send("ui.b", message.ModeCore).check(t, silence, "delivered")
		v := k.send("ui.a", message.ModeStream)
		v.check(t, jsapi.Timeout, timedOut)
		if got := seen.get(); got != 4 {
			t.Errorf("subscribers saw %d, want 4", got)
		}
	})
}

// TestTimeOfDelivery: if silence counts as the delivery, its time is the time at which the server confirmed the
// message, and not the end of the silence. The time of any other delivery is the time of its answer.
func TestTimeOfDelivery(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
		k.stream(jetstream.StreamConfig{Name: "LOGS", Subjects: []string{"logs.>"}, NoAck: true})
		k.subscribe("ui.>", nil)
		k.subscribe("svc.>", func(m *nats.Msg) { time.Sleep(time.Second); _ = m.Respond([]byte("done")) })
		for _, tt := range []struct {
			target   string
			mode     message.Mode
			at, took time.Duration
		}{
			{"ui.a", message.ModeAuto, 0, 2 * silence}, // the first silence causes the list
			{"ui.a", message.ModeAuto, 0, silence},
			{"ui.a", message.ModeCore, 0, silence},
			{"logs.a", message.ModeAuto, 0, silence},
			{"orders.a", message.ModeAuto, 0, 0},
			{"svc.a", message.ModeRequest, time.Second, time.Second},
		} {
			time.Sleep(time.Second) // until the server has answered the flush of the last delivery
			v := k.send(tt.target, tt.mode)
			v.check(t, tt.took, "delivered")
			if at := v.results[0].Time.Sub(v.start); at != tt.at {
				t.Errorf("%s in mode %s: delivered after %s, want %s", tt.target, tt.mode, at, tt.at)
			}
		}
	})
}

// TestTimeOfIgnoredReply: a reply that may be a stream's acknowledgement is ignored until the timeout. If it then
// counts as the service's reply, the time of the delivery is the time of the reply.
func TestTimeOfIgnoredReply(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.subscribe("svc", func(m *nats.Msg) { time.Sleep(time.Second); _ = m.Respond([]byte(`{"stream":"X","seq":7}`)) })
		v := k.send("svc", message.ModeRequest) // the streams are not known yet
		v.check(t, replyTimeout, "delivered")
		if at := v.results[0].Time.Sub(v.start); at != time.Second {
			t.Errorf("delivered after %s, want a second", at)
		}
	})
}

func TestNobodyListens(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		for _, mode := range []message.Mode{message.ModeAuto, message.ModeStream, message.ModeCore} {
			k.send("nobody.a", mode).check(t, 0, "refused 503")
		}
	})
}

// TestResponderOnStreamSubject: the answer of a responder on the stream's subject does not count as the stream's
// answer.
func TestResponderOnStreamSubject(t *testing.T) {
	for name, answer := range map[string]string{"text": "+OK", "an error": `{"error":"no such order"}`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
				k.subscribe("orders.>", func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
				for range 10 {
					k.send("orders.a", message.ModeAuto).check(t, 0, "delivered")
				}
				if got := k.stored("ORDERS"); got != 10 {
					t.Errorf("%d stored, want 10", got)
				}
			})
		})
	}
}

// TestResponderWithoutStream: a responder answers, and no stream listens. In mode auto, the answer is ignored, and the
// silence after it counts as a delivery.
func TestResponderWithoutStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		seen := k.subscribe("svc", func(m *nats.Msg) { _ = m.Respond([]byte("done")) })
		k.send("svc", message.ModeCore).check(t, 0, "delivered")
		time.Sleep(time.Second) // until the silence of the last delivery is over
		k.send("svc", message.ModeAuto).check(t, 2*silence, "delivered")
		if got := seen.get(); got != 2 {
			t.Errorf("the service saw %d, want 2", got)
		}
	})
}

// TestStreamFull: a full stream refuses the message, even if a subscriber got it. The result has the stream's code.
func TestStreamFull(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"},
			Discard: jetstream.DiscardNew, MaxMsgs: 1, MaxMsgSize: 100})
		k.subscribe("orders.>", nil)
		k.send("orders.a", message.ModeAuto).check(t, 0, "delivered")
		k.send("orders.a", message.ModeAuto).check(t, 0, "refused 10077")
		k.send("orders.a", message.ModeStream).check(t, 0, "refused 10077")
		k.deliver(Message{Target: "orders.a", Data: make([]byte, 200)}).check(t, 0, "refused 10054")
		if got := k.stored("ORDERS"); got != 1 {
			t.Errorf("%d stored, want 1", got)
		}
	})
}

// TestTooLargeForTheServer: a message that is larger than max_payload is refused, and not published.
func TestTooLargeForTheServer(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.deliver(Message{Target: "a", Data: make([]byte, k.nc.MaxPayload()+1)}).check(t, 0, "refused 10054")
	})
}

// TestNoAckStream: a stream that never acknowledges gets one copy.
func TestNoAckStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "LOGS", Subjects: []string{"logs.>"}, NoAck: true})
		k.send("logs.a", message.ModeAuto).check(t, 2*silence, "delivered")
		if got := k.stored("LOGS"); got != 1 {
			t.Errorf("%d stored, want 1", got)
		}
	})
}

// TestStreamDeleted: a stream is deleted right after it has acknowledged, and a subscriber remains on its subject. For
// a minute, silence is no delivery. After that, silence is a delivery.
func TestStreamDeleted(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
		k.subscribe("orders.>", nil)
		k.send("orders.a", message.ModeAuto).check(t, 0, "delivered")
		if err := k.js.DeleteStream(context.Background(), "ORDERS"); err != nil {
			t.Fatal(err)
		}
		k.send("orders.a", message.ModeAuto).check(t, jsapi.Timeout, timedOut)
		time.Sleep(ackMemory)
		k.send("orders.a", message.ModeAuto).check(t, 2*silence, "delivered")
	})
}

// TestStreamDeletedBesideAnother: after a stream was deleted, silence is no delivery for a minute, even if a stream
// with a similar subject acknowledges meanwhile.
func TestStreamDeletedBesideAnother(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "GONE", Subjects: []string{"shop.eu.1"}})
		k.stream(jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"shop.eu.2"}})
		k.subscribe("shop.eu.>", nil)
		k.send("shop.eu.1", message.ModeAuto).check(t, 0, "delivered")
		k.send("shop.eu.2", message.ModeAuto).check(t, 0, "delivered")
		if err := k.js.DeleteStream(context.Background(), "GONE"); err != nil {
			t.Fatal(err)
		}
		k.send("shop.eu.1", message.ModeAuto).check(t, jsapi.Timeout, timedOut)
	})
}

// TestStreamCreated: a stream is created on a subject that had no stream in the last list. The stream's acknowledgement
// or refusal counts immediately.
func TestStreamCreated(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.subscribe("orders.>", nil)
		k.send("orders.a", message.ModeAuto).check(t, 2*silence, "delivered")
		k.stream(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"},
			Discard: jetstream.DiscardNew, MaxMsgs: 1})
		k.send("orders.a", message.ModeAuto).check(t, 0, "delivered")
		k.send("orders.a", message.ModeAuto).check(t, 0, "refused 10077")
	})
}

// TestSilentStream: a listed stream does not answer. In mode auto, the outcome is unknown, because the silence is not
// that of core subscribers.
func TestSilentStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.lookup.api = ordersListed
		k.subscribe("orders.>", nil)
		k.send("orders.a", message.ModeAuto).check(t, jsapi.Timeout, timedOut)
		time.Sleep(time.Second)
		k.send("orders.a", message.ModeCore).check(t, silence, "delivered")
	})
}

// fixedReply is the JSON answer to every request.
type fixedReply string

func (p fixedReply) Ask(_ context.Context, _ string, _, answer any) error {
	return json.Unmarshal([]byte(p), answer)
}

// ordersListed is a list with a stream that does not exist.
const ordersListed = fixedReply(`{"total":1,"streams":[{"config":{"name":"ORDERS","subjects":["orders.>"]}}]}`)

// TestForgedAck: while the target's stream is known, an answer in the name of another stream or without a sequence is
// ignored.
func TestForgedAck(t *testing.T) {
	for name, forged := range map[string]string{
		"an acknowledgement": `{"stream":"EVIL","seq":1}`,
		"without a sequence": `{"stream":"ORDERS","seq":0}`,
		"a refusal":          `{"stream":"EVIL","seq":0,"error":{"code":503,"err_code":10077,"description":"full"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				k.lookup.api = ordersListed
				answering := false
				k.subscribe("orders.>", func(m *nats.Msg) {
					if answering {
						_ = m.Respond([]byte(forged))
					}
				})
				k.send("orders.a", message.ModeAuto).check(t, jsapi.Timeout, timedOut)
				k.lookup.snapshot.Load().at = time.Now() // so that the list is valid
				answering = true
				k.send("orders.a", message.ModeStream).check(t, jsapi.Timeout, timedOut)
			})
		})
	}
}
