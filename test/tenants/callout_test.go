package tenants

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// calloutConf is a server whose users of the account APP are admitted by a service in the account AUTH.
const calloutConf = `
accounts {
  AUTH { users: [{user: auth, password: auth}] }
  APP { jetstream: enabled }
}
authorization {
  auth_callout { issuer: %s, auth_users: [auth], account: AUTH }
}
`

// admit answers the server's requests about users. It admits each one for a lifetime.
func admit(t *testing.T, s *natstest.Server, issuer nkeys.KeyPair, lifetime time.Duration) {
	nc := s.Connect(nats.UserInfo("auth", "auth"))
	natstest.Handle(t, nc, "$SYS.REQ.USER.AUTH", func(m *nats.Msg) {
		request, err := jwt.DecodeAuthorizationRequestClaims(string(m.Data))
		if err != nil {
			t.Errorf("the server's request: %v", err)
			return
		}
		user := jwt.NewUserClaims(request.UserNkey)
		user.Audience, user.Expires = "APP", time.Now().Add(lifetime).Unix()
		answer := jwt.NewAuthorizationResponseClaims(request.UserNkey)
		answer.Audience = request.Server.ID
		if answer.Jwt, err = user.Encode(issuer); err != nil {
			t.Error(err)
		}
		text, err := answer.Encode(issuer)
		if err != nil {
			t.Error(err)
		}
		_ = m.Respond([]byte(text))
	})
	natstest.Flush(t, nc)
}

// TestAuthCallout: a service admits all users for a minute at a time. The server ends all connections of the brokers
// when they expire, and they log in again. Each message arrives once, and is late by a second at most.
func TestAuthCallout(t *testing.T) {
	issuer, err := nkeys.CreateAccount()
	natstest.NoError(t, err)
	id, err := issuer.PublicKey()
	natstest.NoError(t, err)
	file := filepath.Join(t.TempDir(), "callout.conf")
	natstest.NoError(t, os.WriteFile(file, fmt.Appendf(nil, calloutConf, id), 0o600))
	conf, err := server.ProcessConfigFile(file)
	natstest.NoError(t, err)
	conf.NoSigs, conf.NoLog = true, true
	natstest.BubbleWith(t, *conf, func(t *testing.T, s *natstest.Server) {
		admit(t, s, issuer, time.Minute)
		// As the command's connections, these try again after a refused login.
		opts := []nats.Option{nats.IgnoreAuthErrorAbort(), nats.ReconnectWait(500 * time.Millisecond)}
		client := func() *harness.Client { return harness.WrapConn(t, s.Connect(opts...)) }
		var links broker.Links // of the second instance, which stands by
		for range 2 {
			cfg := broker.Config{Leaser: harness.Together, Timers: true, Log: harness.NoLog}
			links = harness.StartBroker(t, s, cfg, opts...).Links
			time.Sleep(7 * time.Second)
		}
		c := client()
		c.Target("ORDERS", "orders.>")
		const count = 300
		for i := range count {
			for !harness.Accepts(c.JS, "delay.30s.orders.x", fmt.Sprint(i)) { // the client also logs in again
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(40 * time.Second)
		arrivals := client().Arrivals("ORDERS")
		bodies, ids := make(map[string]bool), make(map[string]bool)
		for _, a := range arrivals { // the client repeats a publish whose acknowledgement it has missed
			bodies[a.Body], ids[a.ID] = true, true
		}
		if len(bodies) != count || len(ids) != len(arrivals) {
			t.Errorf("%d messages arrived as %d, with %d ids; want %d, each once", len(bodies), len(arrivals), len(ids), count)
		}
		if n := links.Control.Stats().Reconnects; n < 5 {
			t.Errorf("a connection logged in again %d times, want once a minute", n)
		}
		for _, a := range arrivals {
			if late := a.At.Sub(a.Due); late > time.Second {
				t.Errorf("message %s is late by %s", a.Body, late)
			}
		}
	})
}
