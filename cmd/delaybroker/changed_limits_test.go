package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// readyCode returns the status code of /readyz.
func readyCode(t *testing.T, r *program) int {
	t.Helper()
	response, err := http.Get(fmt.Sprintf("http://%s/readyz", r.ready["http"]))
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestMaxPayloadIsLowered: the server's max_payload is lowered while a larger message waits. The server closes the link
// that delivers the message. The process lives, opens all links again, and delivers the others. When max_payload is
// raised, the message is delivered, without a restart.
func TestMaxPayloadIsLowered(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	running := natstest.RunWith(t, server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, MaxPayload: 4 << 20,
	})
	s := running.Server()
	externalEnv(t, s.ClientURL())
	t.Setenv("DELAY_PROVISION", "create")
	t.Setenv("DELAY_LEVELS", "1s,2s")
	r := startReady(t)
	nc, js := connect(t, s.ClientURL())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "T", Subjects: []string{"t.>"}}); err != nil {
		t.Fatal(err)
	}
	publish(t, js, "delay.2s.t.large", strings.Repeat("x", 3<<20))
	running.Reload(func(o *server.Options) { o.MaxPayload = 1 << 20 })
	r.log.await(t, "the server closed a link for good; the broker opens all links again")
	nc.Close()
	_, js = connect(t, s.ClientURL())
	publish(t, js, "delay.1s.t.small", "x")
	eventually(t, "small message", func() bool {
		s, err := js.Stream(t.Context(), "T")
		natstest.NoError(t, err)
		return s.CachedInfo().State.Msgs == 1
	})
	// Even the dead letter is too large, so the message stays in its lane.
	eventually(t, "name of the cause", func() bool {
		_, notes, _ := runCommand(t, "", "retrying")
		return strings.Contains(notes, "messages that are too large for the server, also as dead letters, wait in DELAY_2s")
	})
	if got := readyCode(t, r); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz is %d, want 503", got)
	}
	running.Reload(func(o *server.Options) { o.MaxPayload = 4 << 20 })
	eventually(t, "large message, without a restart", func() bool {
		s, err := js.Stream(t.Context(), "T")
		natstest.NoError(t, err)
		return s.CachedInfo().State.Msgs == 2
	})
	r.stop(t)
}

// TestSubscriptionsAreRefused: the account's limit of subscriptions is lowered below the need, and the server closes
// the links. When the limit is raised, the broker delivers again, without a restart.
func TestSubscriptionsAreRefused(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	account := natstest.NewAccount(t, func(*jwt.AccountClaims) {})
	options := server.Options{Port: server.RANDOM_PORT}
	account.Options(&options)
	s := startServer(t, options)
	externalEnv(t, s.ClientURL())
	t.Setenv("NATS_CREDS", account.Credentials())
	t.Setenv("DELAY_PROVISION", "create")
	t.Setenv("DELAY_LEVELS", "1s,2s")
	r := startReady(t)
	nc, err := nats.Connect(s.ClientURL(), account.User())
	natstest.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	natstest.NoError(t, err)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "T", Subjects: []string{"t.>"}}); err != nil {
		t.Fatal(err)
	}
	account.Change(s, func(c *jwt.AccountClaims) { c.Limits.Subs = 8 })
	r.log.await(t, "NATS refuses subscriptions of a link, without which nothing is delivered; the link reconnects until "+
		"all are accepted")
	if got := readyCode(t, r); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz is %d, want 503", got)
	}
	account.Change(s, func(c *jwt.AccountClaims) { c.Limits.Subs = -1 })
	began := time.Now()
	eventually(t, "readiness", func() bool { return readyCode(t, r) == http.StatusOK })
	publish(t, js, "delay.1s.t.a", "x")
	eventually(t, "message", func() bool {
		s, err := js.Stream(t.Context(), "T")
		natstest.NoError(t, err)
		return s.CachedInfo().State.Msgs == 1
	})
	t.Logf("delivered %s after the limit was raised", time.Since(began).Round(time.Second))
	r.stop(t)
}
