package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// An operated is a NATS server, with the actions of its operators.
type operated struct {
	t             *testing.T
	server        *server.Server
	nc            *nats.Conn
	js            jetstream.JetStream
	lettersStored int // dead letters
}

// operateOn starts a server and points the settings at it. There are no streams yet.
func operateOn(t *testing.T, o server.Options) *operated {
	t.Helper()
	o.Port = server.RANDOM_PORT
	s := startServer(t, o)
	externalEnv(t, s.ClientURL())
	nc, js := connect(t, s.ClientURL())
	return &operated{t: t, server: s, nc: nc, js: js}
}

// run runs a verb and returns what it printed.
func (o *operated) run(args ...string) (stdout, stderr string, err error) {
	o.t.Helper()
	return runVerb(o.t, "", args...)
}

// must runs a verb that has to succeed.
func (o *operated) must(args ...string) string {
	o.t.Helper()
	out, errs, err := o.run(args...)
	if err != nil {
		o.t.Fatalf("%q: got %v, want nil\n%s%s", args, err, out, errs)
	}
	return out
}

// serve runs a broker until the test ends.
func (o *operated) serve() {
	o.t.Helper()
	o.t.Setenv("DELAY_PROVISION", "create")
	r := start(o.t)
	o.t.Cleanup(func() { r.stop(o.t) })
	r.log.await(o.t, "ready")
}

func (o *operated) publish(subject, payload string) *jetstream.PubAck {
	o.t.Helper()
	ack, err := o.js.Publish(o.t.Context(), subject, []byte(payload))
	if err != nil {
		o.t.Fatal(err)
	}
	return ack
}

// change edits a stream behind the broker's back.
func (o *operated) change(stream string, edit func(*jetstream.StreamConfig)) {
	o.t.Helper()
	natstest.Reconfigure(o.t, o.js, stream, edit)
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("decode %q: %v", text, err)
	}
	return v
}

// wantRows looks for parts in each row of a table.
func wantRows(t *testing.T, rows []string, parts [][]string) {
	t.Helper()
	for at, want := range parts {
		for _, part := range want {
			if !strings.Contains(rows[at], part) {
				t.Errorf("row %d: got no %q in %q", at+1, part, rows[at])
			}
		}
	}
}

// eventually waits for a result of the broker's work. It asks less often the longer it waits, since a condition may run
// a command.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	late, pause := time.Now().Add(timeout), 10*time.Millisecond
	for !is() {
		if time.Now().After(late) {
			t.Fatalf("got no %s", what)
		}
		time.Sleep(pause)
		pause = min(2*pause, 200*time.Millisecond)
	}
}

// sealed returns a message with the seal of a broker.
func (o *operated) sealed(m *nats.Msg) *nats.Msg {
	o.t.Helper()
	streams, err := broker.StreamsOf(broker.Config{})
	if err != nil {
		o.t.Fatal(err)
	}
	if err := streams.ReadKeys(o.t.Context(), o.js); err != nil {
		o.t.Fatal(err)
	}
	streams.Policy().Keys.SealMessage(m.Subject, message.Header(m.Header), m.Data, time.Now())
	return m
}
