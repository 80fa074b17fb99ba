package doctor

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// withStreams runs f under fake time with the users of natstest.BubbleAs, and with the streams of a configuration that
// has two levels.
func withStreams(
	t *testing.T, rights server.Permissions, f func(t *testing.T, s *natstest.Server, cfg broker.Config),
) {
	t.Helper()
	natstest.BubbleAs(t, rights, func(t *testing.T, s *natstest.Server) {
		cfg := configOf(t, "1s 5s")
		provisionStreams(t, s, cfg)
		f(t, s, cfg)
	})
}

// configOf returns a configuration with few levels. The intake takes other durations only in delayin subjects, because
// the subjects of all 1,300 plain durations would take most of the processor time of these tests.
func configOf(t *testing.T, ladder string) broker.Config {
	t.Helper()
	return broker.Config{Ladder: harness.Ladder(t, ladder), IntakeDurations: []string{}}
}

// provision creates the streams of a configuration.
func provisionStreams(t *testing.T, s *natstest.Server, cfg broker.Config) {
	t.Helper()
	if _, err := harness.InspectAs(t, s, cfg, "").Provision(t.Context(), false); err != nil {
		t.Fatal(err)
	}
}
