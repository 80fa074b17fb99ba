package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/test/natstest"
)

// where follows a message through a hop and a refusal to the dead letters.
func TestWhereFollowsMessage(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_ATTEMPTS", "2")
	t.Setenv("DELAY_RETRY", "5s")       // long enough to see the wait
	t.Setenv("DELAY_DELIVER", "stream") // a target without a stream refuses every delivery
	o.serve()
	o.publish("delay.8s.orders.expire", "")
	var id string
	eventually(t, "hop", func() bool {
		s, err := o.js.Stream(t.Context(), "DELAY_5s")
		natstest.NoError(t, err)
		m, err := s.GetMsg(t.Context(), 1)
		if err == nil {
			id, _, _ = strings.Cut(m.Header.Get(nats.MsgIdHdr), "/") // the hop's own id is <Delay-Id>/<hop>
		}
		return err == nil
	})
	if w := o.mustFind(id); w.Stream != "DELAY_5s" && w.Stream != "DELAY_INTAKE" || w.Target != "orders.expire" {
		t.Errorf("got %+v, want DELAY_5s, or the intake before its commit", w)
	}
	eventually(t, "commit of the intake", func() bool { return o.mustFind(id).Stream == "DELAY_5s" })
	if w := o.mustFind(id); w.Searched != 1 || w.Attempts != 0 || w.Due.Sub(w.Accepted) != 8*time.Second {
		t.Errorf("got %+v, want it due after 8s, as the only message searched", w)
	}
	eventually(t, "retry", func() bool { return o.mustFind(id).Attempts == 1 })
	if w := o.mustFind(id); !strings.HasPrefix(w.Stream, "DELAY_RETRY_") && w.Stream != "DELAY_DEAD" {
		t.Errorf("after a refusal: got %+v", w)
	}
	if w := o.mustFind(id); strings.HasPrefix(w.Stream, "DELAY_RETRY_") {
		if !strings.Contains(w.LastError, "nobody listens") || w.Allowed != 2 ||
			!w.RetryAt.After(w.Due) || w.LastFailure.IsZero() {
			t.Errorf("after a refusal: got %+v, want its reason and its next attempt", w)
		}
	}
	eventually(t, "dead letter", func() bool { return o.mustFind(id).Stream == "DELAY_DEAD" })
	if w := o.mustFind(id); w.Code != "undelivered" || w.Reason == "" || w.Target != "orders.expire" || w.Due.IsZero() {
		t.Errorf("dead letter: got %+v, want undelivered with its reason, target and due", w)
	}
}

func TestWhereDelivered(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.serve()
	sub := subscribe(t, o.nc, "x")
	o.publish("delayin.1ms.x", "here")
	id := wantMessage(t, sub, "here").Header.Get(message.HeaderID)
	eventually(t, "commit", func() bool { _, _, err := o.run("where", id); return err != nil })
	if w := o.mustNotFind(id); !strings.Contains(w.Answer, "delivered") {
		t.Errorf("got %q, want delivered", w.Answer)
	}
}

// The limits are those of the broker, not those of this command's settings.
func TestWhereIgnoresAttemptLimit(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	msg := nats.NewMsg("delay.5s.orders.expire")
	msg.Header.Set(message.HeaderMaxAttempts, "30")
	if _, err := o.js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	if w := o.mustFind("DELAY_5s-1"); w.Code != "" || !strings.HasPrefix(w.Answer, "waiting") {
		t.Errorf("got %+v, want a waiting message", w)
	}
}

// A due time that was refused, or that cannot be parsed, is not shown.
func TestWhereHidesInvalidDueTime(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	o.publish("delayin.500d.orders.x", "")
	id := o.idOf("DELAY_INTAKE", 1).String()
	if w := o.mustFind(id); w.Code != "too_far" || !w.Due.IsZero() {
		t.Errorf("before it is a dead letter: got %+v, want no due time", w)
	}
	o.serve()
	eventually(t, "dead letter", func() bool { return o.mustFind(id).Stream == "DELAY_DEAD" })
	if w := o.mustFind(id); w.Code != "too_far" || !w.Due.IsZero() || !strings.Contains(w.Reason, "more than 366d ahead") {
		t.Errorf("got %+v, want the reason, and no due time", w)
	}
}

// A message that waits for its next attempt has a reason: it was refused, or deferred without a refusal.
func TestWhereInARetryLane(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	now := time.Now().UTC()
	accepted := message.ID{Stream: "DELAY_1s", Sequence: 1, At: now.Add(-time.Minute)}
	request := message.Request{
		ID:              accepted.String(),
		Accepted:        accepted.At,
		Due:             accepted.At.Add(time.Second),
		Hop:             2,
		AllowedRefusals: 20,
	}
	refused := request.WithRefusal(now, now.Add(time.Hour), "\x1b[2Jno stock")
	deferred := refused
	deferred.ID = message.ID{Stream: "DELAY_1s", Sequence: 2, At: accepted.At}.String()
	deferred = deferred.WithDeferral(now.Add(time.Hour), "JetStream has no room")
	for _, r := range []message.Request{refused, deferred} {
		hop := nats.NewMsg("delaysys.retry.30s.shop.mail")
		hop.Header = nats.Header(r.HopHeader())
		if _, err := o.js.PublishMsg(t.Context(), hop); err != nil {
			t.Fatal(err)
		}
	}
	const (
		reason = "last reason   [2Jno stock"
		next   = "next attempt  "
	)
	for id, wanted := range map[string][]string{
		refused.ID: {"refused, next attempt in 59m", "refused       1 of 20", text.Moment(now), reason, next},
		deferred.ID: {
			"deferred, next attempt in 59m", "refused       1 of 20", reason, "deferred      JetStream has no room", next,
		},
	} {
		out := o.must("where", id)
		for _, want := range wanted {
			if !strings.Contains(out, want) {
				t.Errorf("got no %q in\n%s", want, out)
			}
		}
	}
}
