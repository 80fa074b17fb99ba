package client_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestNoBroker: if no stream listens, every request fails with ErrNoBroker. The error has the subjects of the
// publishes.
func TestNoBroker(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, _ := newClient(t, s, client.Config{})
		_, err := c.In(t.Context(), "shop.x", time.Hour, nil)
		wantError(t, err, client.ErrNoBroker)
		if err == nil || !strings.Contains(err.Error(), "delay.1h.shop.x, then to delayin.1h.shop.x") {
			t.Errorf("got %v, want both subjects", err)
		}
		_, err = c.At(t.Context(), "shop.x", time.Now().Add(time.Hour), nil)
		wantError(t, err, client.ErrNoBroker)
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 2h"), Prefix: "later"})
		_, err = c.In(t.Context(), "shop.x", 2*time.Hour, nil)
		wantError(t, err, client.ErrNoBroker)
		c, _ = newClient(t, s, client.Config{Prefix: "later"})
		if r, err := c.In(t.Context(), "shop.x", 2*time.Hour, nil); err != nil || r.Stream != "LATER_2h" {
			t.Errorf("got %+v, %v, want it in LATER_2h", r, err)
		}
	})
}

// TestFull: if a level is full, the client does not publish the message to the intake.
func TestFull(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{MaxPending: 2})
		c, _ := newClient(t, s, client.Config{})
		for range 2 {
			if _, err := c.In(t.Context(), "shop.x", time.Hour, nil); err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.In(t.Context(), "shop.x", time.Hour, nil)
		wantError(t, err, client.ErrFull)
		if err == nil || !strings.Contains(err.Error(), "maximum messages exceeded") {
			t.Errorf("got %v, want the server's error text too", err)
		}
	})
}

// TestForeign: if an answer does not come from a stream of the broker, the error is ErrForeign.
func TestForeign(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{})
		if _, err := s.JetStream(nc).CreateStream(t.Context(),
			jetstream.StreamConfig{Name: "ALL", Subjects: []string{"delayin.>"}}); err != nil {
			t.Fatal(err)
		}
		_, err := c.In(t.Context(), "shop.x", 1234*time.Millisecond, nil)
		wantError(t, err, client.ErrForeign)
		for _, answer := range []string{"hello", `{"ok":true}`, `{"stream":"DELAY_INTAKE"}`, `{"stream":"OTHER","seq":7}`} {
			sub, err := nc.Subscribe("delayat.>", func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.At(t.Context(), "shop.x", time.Now(), nil)
			wantError(t, err, client.ErrForeign)
			if err := sub.Unsubscribe(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestUnanswered: a publish without an answer fails with ErrUnanswered, when its context ends or after the client's
// timeout. The client does not publish on another subject, since the message could be stored twice.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{Timeout: 3 * time.Second})
		received := 0
		if _, err := nc.Subscribe("*.>", func(m *nats.Msg) {
			if strings.HasPrefix(m.Subject, "delay") {
				received++
			}
		}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := c.In(t.Context(), "shop.x", time.Hour, nil)
		wantError(t, err, client.ErrUnanswered)
		wantError(t, err, context.DeadlineExceeded)
		if elapsed := time.Since(began); elapsed != 3*time.Second {
			t.Errorf("the call took %s, want the timeout of 3s", elapsed)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.In(ctx, "shop.x", time.Hour, nil)
		wantError(t, err, client.ErrUnanswered)
		if elapsed := time.Since(began); elapsed != 4*time.Second {
			t.Errorf("both calls took %s, want 4s, with the timeout of 1s of the second context", elapsed)
		}
		_, err = c.In(ctx, "shop.x", time.Hour, nil) // ctx has ended
		wantError(t, err, context.DeadlineExceeded)
		synctest.Wait()
		if received != 2 {
			t.Errorf("%d publishes arrived, want one for each of two calls", received)
		}
		s.Stop()
		_, err = c.At(t.Context(), "shop.x", time.Now(), nil)
		wantError(t, err, client.ErrUnanswered)
		s.Start()
		nc.Close()
		_, err = c.At(t.Context(), "shop.x", time.Now(), nil)
		wantError(t, err, client.ErrUnanswered)
		wantError(t, err, nats.ErrConnectionClosed)
	})
}

// TestForbidden: the server does not answer a user without permission. The error of the call wraps the permission error
// of the connection.
func TestForbidden(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, server.Options{NoAuthUser: "all", Users: []*server.User{
		{Username: "all", Password: "all"},
		{Username: "orders", Password: "orders", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"delay.*.orders.>", "delayin.*.orders.>"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}},
	}}, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s")})
		c, _ := newClient(t, s, client.Config{}, nats.UserInfo("orders", "orders"))
		r, err := c.In(t.Context(), "orders.x", 5*time.Second, nil)
		if err != nil || r.Stream != "DELAY_5s" {
			t.Errorf("got %+v, %v, want the message in DELAY_5s", r, err)
		}
		_, err = c.In(t.Context(), "payments.x", 5*time.Second, nil)
		wantError(t, err, client.ErrUnanswered)
		wantError(t, err, nats.ErrPermissionViolation)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := c.Lookup(ctx, r); err == nil || got != r {
			t.Errorf("got %+v, %v, want the unchanged receipt and an error", got, err)
		}
		if err := c.ReadLevels(t.Context()); err == nil {
			t.Error("ReadLevels succeeded without the permission")
		}
		if r, err := c.In(t.Context(), "orders.x", 5*time.Second, nil); err != nil || r.Stream != "DELAY_5s" {
			t.Errorf("after the refused requests: got %+v, %v, want the message in DELAY_5s", r, err)
		}
	})
}

// TestRefusedRequests: a broker's refusal of a request becomes the sentinel of its code, and its text is in the error.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, nc := newClient(t, s, client.Config{Timeout: time.Second})
		for code, want := range map[string]error{
			"400": client.ErrBadOption, "404": client.ErrNoBroker, "413": client.ErrTooLarge, "429": client.ErrBusy,
			"503": client.ErrBusy, "507": client.ErrFull,
		} {
			sub, err := nc.Subscribe("delayctl.>", func(m *nats.Msg) {
				_ = m.RespondMsg(&nats.Msg{Header: nats.Header{
					micro.ErrorHeader: {"the reason of " + code}, micro.ErrorCodeHeader: {code},
				}})
			})
			if err != nil {
				t.Fatal(err)
			}
			err = c.Pause(t.Context(), "k", "shop.x")
			wantError(t, err, want)
			if !strings.Contains(err.Error(), "the reason of "+code) {
				t.Errorf("code %s: %v, want the broker's text", code, err)
			}
			if err := sub.Unsubscribe(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
