package inspect

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

// open returns an inspector that connects as a user: see natstest.ConnectAs.
func open(t *testing.T, s *natstest.Server, cfg config.Config, user string) *Inspector {
	t.Helper()
	i, err := Open(s.ConnectAs(user), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// configOf returns a configuration with few levels. The intake takes other durations only in delayin subjects, because
// the subjects of all 1,300 plain durations would take most of the processor time of these tests.
func configOf(t *testing.T, prefix, ladder string) config.Config {
	t.Helper()
	l, err := levels.Parse(ladder)
	if err != nil {
		t.Fatal(err)
	}
	return config.Config{Prefix: prefix, Ladder: l, IntakeDurations: []string{}}
}

// createStreams creates the streams of a configuration.
func createStreams(t *testing.T, s *natstest.Server, cfg config.Config) {
	t.Helper()
	if _, err := open(t, s, cfg, "").Provision(t.Context(), false); err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, i *Inspector, subject string) {
	t.Helper()
	if _, err := i.JetStream.Publish(t.Context(), subject, nil); err != nil {
		t.Fatal(err)
	}
}

// storeAll publishes messages, and waits until all are stored.
func storeAll(t *testing.T, i *Inspector, messages ...*nats.Msg) {
	t.Helper()
	for _, m := range messages {
		if err := i.Conn.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	natstest.Flush(t, i.Conn)
	synctest.Wait()
}

func newMsg(subject string, header ...string) *nats.Msg {
	m := nats.NewMsg(subject)
	for n := 0; n < len(header); n += 2 {
		m.Header.Set(header[n], header[n+1])
	}
	return m
}

// newHop returns a hop in a level, with its final due time.
func newHop(i *Inspector, level, target string, n uint64, due time.Time) *nats.Msg {
	id := message.ID{Stream: "DELAY_INTAKE", Sequence: n, At: time.Now().UTC()}
	r := message.Request{ID: id.String(), Target: target, Accepted: id.At, Due: due.UTC()}
	m := nats.NewMsg(i.names.Hop(level, target))
	m.Header = nats.Header(r.HopHeader())
	return m
}

// consumersOf returns the number of consumers of a stream.
func consumersOf(t *testing.T, i *Inspector, name string) int {
	t.Helper()
	stream, err := i.JetStream.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Consumers
}
