package deliver

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestService: in mode request, a reply without an error counts as a delivery. A reply with an error, and a missing
// reply, count as refusals.
func TestService(t *testing.T) {
	const slow = 9 * time.Second
	for name, test := range map[string]struct {
		answer *nats.Msg // nil: none
		after  time.Duration
		took   time.Duration
		want   string
	}{
		"text":           {answer: &nats.Msg{Data: []byte("done")}, want: "delivered"},
		"nothing":        {answer: &nats.Msg{}, want: "delivered"},
		"slow":           {answer: &nats.Msg{Data: []byte("done")}, after: slow, took: slow, want: "delivered"},
		"a header":       {answer: &nats.Msg{Header: nats.Header{"X": {"y"}}}, want: "delivered"},
		"an error":       {answer: &nats.Msg{Header: errorHeader("no such order", "404")}, want: "refused 0"},
		"an error, text": {answer: &nats.Msg{Header: errorHeader("no", ""), Data: []byte("done")}, want: "refused 0"},
		"its code alone": {answer: &nats.Msg{Header: errorHeader("", "10054")}, want: "refused 0"},
		"silence":        {took: replyTimeout, want: "refused 0"},
		"too late": {
			answer: &nats.Msg{Data: []byte("done")}, after: replyTimeout + 1, took: replyTimeout, want: "refused 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
				k := newKit(t, s)
				seen := k.subscribe("svc", func(m *nats.Msg) {
					if test.answer == nil {
						return
					}
					answer := *test.answer
					time.Sleep(test.after)
					_ = m.RespondMsg(&answer)
				})
				k.send("svc", message.ModeRequest).check(t, test.took, test.want)
				if got := seen.get(); got != 1 {
					t.Errorf("the service saw %d, want 1", got)
				}
				time.Sleep(time.Second) // a reply that comes too late has no effect
			})
		})
	}
}

// errorHeader returns the header of a service's error. It leaves out an empty text or code.
func errorHeader(text, code string) nats.Header {
	h := make(nats.Header)
	if text != "" {
		h["Nats-Service-Error"] = []string{text}
	}
	if code != "" {
		h["Nats-Service-Error-Code"] = []string{code}
	}
	return h
}

func TestServiceMissing(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		newKit(t, s).send("svc", message.ModeRequest).check(t, 0, "refused 503")
	})
}

// TestServiceSubjectInStream: a stream also listens on the service's subject. The acknowledgement or refusal of the
// stream does not count as the service's reply.
func TestServiceSubjectInStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"svc.>"},
			Discard: jetstream.DiscardNew, MaxMsgs: 1})
		for range 2 { // the stream refuses the second message
			k.send("svc.away", message.ModeRequest).check(t, replyTimeout, "refused 0")
		}
		k.subscribe("svc.there", func(m *nats.Msg) {
			time.Sleep(time.Second)
			_ = m.Respond([]byte("done"))
		})
		k.send("svc.there", message.ModeRequest).check(t, time.Second, "delivered")
	})
}

// TestServiceLikeStream: a service replies with JSON that looks like an acknowledgement. The reply counts as the
// service's if a list shows that the named stream does not listen on the target, and at the latest at the timeout.
func TestServiceLikeStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.stream(jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}})
		k.subscribe("svc", func(m *nats.Msg) { _ = m.Respond([]byte(`{"stream":"AUDIT","seq":3}`)) })
		k.send("svc", message.ModeRequest).check(t, replyTimeout, "delivered") // the streams are not known until the timeout
		k.subscribe("ui", nil)
		k.send("ui", message.ModeAuto).check(t, 2*silence, "delivered")
		k.send("svc", message.ModeRequest).check(t, 0, "delivered")
	})
}

func TestServiceReason(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.subscribe("svc", func(m *nats.Msg) {
			_ = m.RespondMsg(&nats.Msg{Header: errorHeader("sold out", "409")})
		})
		v := k.send("svc", message.ModeRequest)
		v.check(t, 0, "refused 0")
		if got, want := v.results[0].Reason, "the service says 409 sold out"; got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
	})
}
