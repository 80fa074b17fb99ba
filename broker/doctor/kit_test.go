package doctor

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// tried is a user with limited permissions.
const tried = "tried"

// bubble runs f under fake time with a server that has a user with all permissions, and one with these.
func bubble(t *testing.T, rights server.Permissions, f func(t *testing.T, s *natstest.Server)) {
	t.Helper()
	natstest.BubbleAs(t, tried, rights, f)
}

// open returns an inspector as a user, or as the one with all permissions.
func open(t *testing.T, s *natstest.Server, cfg broker.Config, user string) *inspect.Inspector {
	t.Helper()
	var as []nats.Option
	if user != "" {
		as = append(as, nats.UserInfo(user, user))
	}
	i, err := inspect.Open(s.Connect(as...), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// with returns a configuration with few levels. The intake takes other durations only in delayin subjects, because the
// subjects of all 1,300 plain durations would take most of the processor time of these tests.
func with(t *testing.T, prefix, ladder string) broker.Config {
	t.Helper()
	return broker.Config{Prefix: prefix, Ladder: harness.Ladder(t, ladder), IntakeDurations: []string{}}
}

// provision creates the streams of a configuration.
func provision(t *testing.T, s *natstest.Server, cfg broker.Config) inspect.Provisioned {
	t.Helper()
	done, err := open(t, s, cfg, "").Provision(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// wantTook fails unless exactly this time has passed.
func wantTook(t *testing.T, began time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(began); took != want {
		t.Errorf("took %s, want %s", took, want)
	}
}
