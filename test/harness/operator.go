package harness

import (
	"context"
	"testing"

	"delaybroker/broker"
	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/lane"
	"delaybroker/broker/pause"
	"delaybroker/test/natstest"
)

// Inspect returns an inspector of brokers with this configuration. It knows the secrets of the brokers.
func Inspect(t *testing.T, s *natstest.Server, cfg broker.Config) *inspect.Inspector {
	t.Helper()
	i := InspectAs(t, s, cfg, "")
	natstest.NoError(t, i.ReadKeys(t.Context()))
	return i
}

// InspectAs is like Inspect, but the inspector connects as a user and does not know the secrets: see
// natstest.ConnectAs.
func InspectAs(t testing.TB, s *natstest.Server, cfg broker.Config, user string) *inspect.Inspector {
	t.Helper()
	i, err := inspect.Open(s.ConnectAs(user), cfg)
	natstest.NoError(t, err)
	return i
}

const PausedStream = "DELAY_PAUSED"

// Operator returns an inspector of several instances with default settings, without their secrets.
func Operator(t testing.TB, s *natstest.Server) *inspect.Inspector {
	t.Helper()
	return InspectAs(t, s, broker.Config{}, "")
}

func MustPause(t testing.TB, i *inspect.Inspector, pattern string) {
	t.Helper()
	if _, err := i.Pause(context.Background(), pattern, pause.Hours{}); err != nil {
		t.Fatalf("pause %s: %v", pattern, err)
	}
}

func MustResume(t testing.TB, i *inspect.Inspector, pattern string) {
	t.Helper()
	if _, err := i.Resume(context.Background(), pattern); err != nil {
		t.Fatalf("resume %s: %v", pattern, err)
	}
}

func MustMessageRef(t *testing.T, id string) inspect.MessageRef {
	t.Helper()
	w, err := inspect.ParseMessageRef(id)
	natstest.NoError(t, err)
	return w
}

// LetterStore returns the store of dead letters, with the connection of the client.
func (c *Client) LetterStore() *deadletter.Store {
	c.T.Helper()
	return deadletter.New(lane.Scan{Conn: c.NC, JetStream: c.JS, APIPrefix: "$JS.API"}, c.Policy("delay"), "1s")
}

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
