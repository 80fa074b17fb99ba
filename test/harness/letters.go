package harness

import (
	"context"

	"delaybroker/broker/deadletter"
)

// Box returns the store of dead letters, on the connection of the client.
func (c *Client) Box() *deadletter.Store {
	c.T.Helper()
	return deadletter.New(deadletter.Config{Conn: c.NC, JetStream: c.JS, APIPrefix: "$JS.API",
		Policy: c.Policy("delay"), Lane: "1s"})
}

// Letters lists all dead letters.
func (c *Client) Letters(box *deadletter.Store) []deadletter.Letter {
	c.T.Helper()
	var all []deadletter.Letter
	for l, err := range box.List(context.Background(), deadletter.Query{}) {
		if err != nil {
			c.T.Fatalf("list dead letters: %v", err)
		}
		all = append(all, l)
	}
	return all
}
