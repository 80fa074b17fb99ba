package harness

import (
	"context"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/message"
)

// Policy returns the policy of a broker with a prefix and no other settings. It reads the keys from the metadata of the
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

// Keys returns the keys of a broker with a prefix.
func (c *Client) Keys(prefix string) *message.Keys {
	c.T.Helper()
	return c.Policy(prefix).Keys
}

// PublishSealed stores a message with a seal made by these keys.
func (c *Client) PublishSealed(k *message.Keys, subject, body string, headers ...string) {
	c.T.Helper()
	m := NewMsg(subject, body, headers...)
	k.SealMessage(subject, message.Header(m.Header), m.Data, time.Now())
	c.Store(m)
}
