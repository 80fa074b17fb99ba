package pauses

import (
	"fmt"
	"testing"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// bubble runs f under fake time with a broker, a client, an operator, and a stream as the target orders.>.
func bubble(
	t *testing.T, cfg broker.Config, f func(t *testing.T, c *harness.Client, o *inspect.Inspector),
) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		c, o := start(t, s, cfg)
		c.Target("ORDERS", "orders.>")
		f(t, c, o)
	})
}

// start runs a broker, and returns a client and an operator.
func start(t *testing.T, s *natstest.Server, cfg broker.Config) (*harness.Client, *inspect.Inspector) {
	t.Helper()
	harness.StartBroker(t, s, cfg)
	return harness.NewClient(t, s), harness.Operator(t, s)
}

// publishNumber publishes a number on some subjects, and does not wait for acknowledgements.
func publishNumber(c *harness.Client, n int, subjects ...string) {
	c.T.Helper()
	for _, subject := range subjects {
		if err := c.NC.Publish(subject, fmt.Appendf(nil, "%06d", n)); err != nil {
			c.T.Error(err)
		}
	}
}
