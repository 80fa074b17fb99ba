package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// A testServer is a NATS server with an operator's actions.
type testServer struct {
	t      *testing.T
	server *server.Server
	nc     *nats.Conn
	js     jetstream.JetStream
}

// newTestServer starts a server without streams, and sets the environment for it.
func newTestServer(t *testing.T, o server.Options) *testServer {
	t.Helper()
	o.Port = server.RANDOM_PORT
	s := startServer(t, o)
	externalEnv(t, s.ClientURL())
	nc, js := connect(t, s.ClientURL())
	return &testServer{t: t, server: s, nc: nc, js: js}
}

// run runs a command, and returns its output.
func (o *testServer) run(args ...string) (stdout, stderr string, err error) {
	o.t.Helper()
	return runCommand(o.t, "", args...)
}

// must runs a command that has to succeed.
func (o *testServer) must(args ...string) string {
	o.t.Helper()
	out, errs, err := o.run(args...)
	if err != nil {
		o.t.Fatalf("%q: got %v, want nil\n%s%s", args, err, out, errs)
	}
	return out
}

// serve runs a broker until the test ends.
func (o *testServer) serve() {
	o.t.Helper()
	o.t.Setenv("DELAY_PROVISION", "create")
	r := start(o.t)
	o.t.Cleanup(func() { r.stop(o.t) })
	r.log.await(o.t, "ready")
}

func (o *testServer) publish(subject, payload string) *jetstream.PubAck {
	o.t.Helper()
	ack, err := o.js.Publish(o.t.Context(), subject, []byte(payload))
	natstest.NoError(o.t, err)
	return ack
}

// change changes the configuration of a stream without the broker.
func (o *testServer) change(stream string, edit func(*jetstream.StreamConfig)) {
	o.t.Helper()
	natstest.Reconfigure(o.t, o.js, stream, edit)
}

// createOrders creates a target: a stream for orders.>.
func (o *testServer) createOrders() {
	o.t.Helper()
	cfg := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}
	if _, err := o.js.CreateStream(o.t.Context(), cfg); err != nil {
		o.t.Fatal(err)
	}
}

// messageCount returns the number of messages in a stream.
func (o *testServer) messageCount(stream string) uint64 {
	o.t.Helper()
	s, err := o.js.Stream(o.t.Context(), stream)
	natstest.NoError(o.t, err)
	return s.CachedInfo().State.Msgs
}

// sealed returns a message with the seal of a broker.
func (o *testServer) sealed(m *nats.Msg) *nats.Msg {
	o.t.Helper()
	streams, err := broker.StreamsOf(broker.Config{})
	natstest.NoError(o.t, err)
	natstest.NoError(o.t, streams.ReadKeys(o.t.Context(), o.js))
	streams.Policy().Keys.SealMessage(m.Subject, message.Header(m.Header), m.Data)
	return m
}

// startBroker runs a broker, and sets the environment for other commands.
func startBroker(t *testing.T) {
	t.Helper()
	embeddedEnv(t)
	r := startReady(t)
	t.Cleanup(func() { r.stop(t) })
	t.Setenv("NATS_URL", r.ready["server"].(string))
	t.Setenv("DELAY_HTTP_ADDR", r.ready["http"].(string))
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	natstest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("decode %q: %v", text, err)
	}
	return v
}

// wantRows checks that each row of a table contains its parts.
func wantRows(t *testing.T, rows []string, parts [][]string) {
	t.Helper()
	for i, want := range parts {
		wantParts(t, rows[i], want...)
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, event string, condition func() bool) {
	t.Helper()
	deadline, pause := time.Now().Add(timeout), 10*time.Millisecond
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("got no %s", event)
		}
		time.Sleep(pause)
		pause = min(2*pause, 200*time.Millisecond) // a condition may run a command
	}
}
