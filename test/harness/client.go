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

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// CallService sends a request to the control service, and decodes the answer. It returns the error code of a refusal,
// "none" without an answer, or otherwise an empty string.
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
			c.T.Errorf("%s is refused without an error text: %v", subject, answer.Header)
		}
		return code
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		c.T.Errorf("%s is answered %q: %v", subject, answer.Data, err)
	}
	return ""
}

// Client publishes requests, and reads arrivals.
type Client struct {
	T  testing.TB
	NC *nats.Conn
	JS jetstream.JetStream
}

// NewClient returns a client with a new connection.
func NewClient(t testing.TB, s *natstest.Server) *Client {
	nc := s.Connect(nats.Name("client"))
	return &Client{T: t, NC: nc, JS: s.JetStream(nc)}
}

// WrapConn returns a client with an existing connection.
func WrapConn(t testing.TB, nc *nats.Conn) *Client {
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatalf("JetStream: %v", err)
	}
	return &Client{T: t, NC: nc, JS: js}
}

// NewReconnectingClient returns a client of the server at an address. The client reconnects when the test restarts the
// server.
func NewReconnectingClient(t testing.TB, address string) *Client {
	t.Helper()
	natstest.DropTimers()
	nc, err := nats.Connect("nats://"+address, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(nc.Close)
	return WrapConn(t, nc)
}

// NewMsg returns a message. The headers are names, each followed by its value.
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

// Store is like Publish, but takes a message.
func (c *Client) Store(m *nats.Msg) *jetstream.PubAck {
	c.T.Helper()
	ack, err := c.JS.PublishMsg(context.Background(), m)
	if err != nil {
		c.T.Fatalf("publish on %s: %v", m.Subject, err)
	}
	return ack
}

// PublishMany publishes messages with numbers as bodies, and waits until the last is stored.
func (c *Client) PublishMany(subject string, count int, headers ...string) {
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

// TryPublish is like Publish, but returns the error.
func (c *Client) TryPublish(subject, body string) error {
	_, err := c.JS.Publish(context.Background(), subject, []byte(body))
	return err
}

// Accepts reports whether a stream stores a publish. Without permission to publish, it returns false after a second,
// because the server does not answer.
func Accepts(js jetstream.JetStream, subject, body string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := js.Publish(ctx, subject, []byte(body), jetstream.WithRetryAttempts(0))
	return err == nil
}

// Policy returns the policy of a broker with a prefix and no other settings, with the keys in the metadata of the
// streams.
func (c *Client) Policy(prefix string) message.Policy {
	c.T.Helper()
	streams, err := broker.StreamsOf(broker.Config{Prefix: prefix})
	if err == nil {
		err = streams.ReadKeys(context.Background(), c.JS)
	}
	if err != nil {
		c.T.Fatalf("read the keys: %v", err)
	}
	return streams.Policy()
}

func (c *Client) Keys(prefix string) *message.Keys {
	c.T.Helper()
	return c.Policy(prefix).Keys
}

// HopHeaders returns the headers with which a broker stores the message in its next lane: names, each with its value.
func HopHeaders(r message.Request) (headers []string) {
	for name, values := range r.HopHeader() {
		headers = append(headers, name, values[0])
	}
	return headers
}

// StateOf returns the request of a message that a broker has stored in a lane.
func StateOf(t testing.TB, h nats.Header) message.Request {
	t.Helper()
	block, _ := message.SplitHeader(message.Header(h), true)
	r, f := message.Policy{}.ReadState(message.Request{}, block, message.InLane)
	if f.Problem != nil {
		t.Errorf("the state of a message cannot be read: %v", f.Problem)
	}
	return r
}

// PublishSealed stores a message with a seal of these keys.
func (c *Client) PublishSealed(k *message.Keys, subject, body string, headers ...string) {
	c.T.Helper()
	m := NewMsg(subject, body, headers...)
	k.SealMessage(subject, message.Header(m.Header), m.Data)
	c.Store(m)
}
