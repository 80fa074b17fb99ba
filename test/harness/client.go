package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/test/natstest"
)

// CallService asks the control service, and returns the code of its refusal; empty for none.
func (c *Client) CallService(into any, subject, body string, headers ...string) (refused string) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := c.NC.RequestMsgWithContext(ctx, NewMsg(subject, body, headers...))
	if err != nil {
		c.T.Errorf("ask %s: %v", subject, err)
		return "none"
	}
	if code := answer.Header.Get(micro.ErrorCodeHeader); code != "" {
		if answer.Header.Get(micro.ErrorHeader) == "" {
			c.T.Errorf("%s is refused without a sentence: %v", subject, answer.Header)
		}
		return code
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		c.T.Errorf("%s is answered %q: %v", subject, answer.Data, err)
	}
	return ""
}

// Client publishes requests and reads what arrives.
type Client struct {
	T  testing.TB
	NC *nats.Conn
	JS jetstream.JetStream
}

// NewClient is a client on a connection of its own.
func NewClient(t testing.TB, s *natstest.Server) *Client {
	nc := s.Connect(nats.Name("client"))
	return &Client{T: t, NC: nc, JS: s.JetStream(nc)}
}

// Connected makes a client of an existing connection.
func Connected(t testing.TB, nc *nats.Conn) *Client {
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatalf("JetStream: %v", err)
	}
	return &Client{T: t, NC: nc, JS: js}
}

// NewMsg is a message with headers, of which each name is before its value.
func NewMsg(subject, body string, headers ...string) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{}}
	for h := range slices.Chunk(headers, 2) {
		m.Header.Add(h[0], h[1])
	}
	return m
}

// Publish stores a message and returns the server's acknowledgement.
func (c *Client) Publish(subject, body string, headers ...string) *jetstream.PubAck {
	c.T.Helper()
	return c.Store(NewMsg(subject, body, headers...))
}

// Store is publish for a message that is already made.
func (c *Client) Store(m *nats.Msg) *jetstream.PubAck {
	c.T.Helper()
	ack, err := c.JS.PublishMsg(context.Background(), m)
	if err != nil {
		c.T.Fatalf("publish on %s: %v", m.Subject, err)
	}
	return ack
}

// Many publishes messages with numbers as bodies and waits until they are stored.
func (c *Client) Many(subject string, count int, headers ...string) {
	c.T.Helper()
	var last jetstream.PubAckFuture
	for i := range count {
		var err error
		if last, err = c.JS.PublishMsgAsync(NewMsg(subject, fmt.Sprint(i), headers...)); err != nil {
			c.T.Fatal(err)
		}
	}
	<-last.Ok()
}

// TryPublish is a publish that may be refused.
func (c *Client) TryPublish(subject, body string) error {
	_, err := c.JS.Publish(context.Background(), subject, []byte(body))
	return err
}

// Accepts reports whether a stream stores a publish. A publish without the right gets no answer: the server reports the
// refusal asynchronously.
func Accepts(js jetstream.JetStream, subject, body string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := js.Publish(ctx, subject, []byte(body), jetstream.WithRetryAttempts(0))
	return err == nil
}
