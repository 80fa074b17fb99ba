package inspect

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/levels"
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
func open(t *testing.T, s *natstest.Server, cfg broker.Config, user string) *Inspector {
	t.Helper()
	var as []nats.Option
	if user != "" {
		as = append(as, nats.UserInfo(user, user))
	}
	i, err := Open(s.Connect(as...), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// with returns a configuration with few levels. The intake takes other durations only in delayin subjects, because the
// subjects of all 1,300 plain durations would take most of the processor time of these tests.
func with(t *testing.T, prefix, ladder string) broker.Config {
	t.Helper()
	l, err := levels.Parse(ladder)
	if err != nil {
		t.Fatal(err)
	}
	return broker.Config{Prefix: prefix, Ladder: l, IntakeDurations: []string{}}
}

// provision creates the streams of a configuration.
func provision(t *testing.T, s *natstest.Server, cfg broker.Config) Provisioned {
	t.Helper()
	done, err := open(t, s, cfg, "").Provision(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func publish(t *testing.T, i *Inspector, subject string) {
	t.Helper()
	if _, err := i.JetStream.Publish(t.Context(), subject, nil); err != nil {
		t.Fatal(err)
	}
}

// wantTook fails unless exactly this time has passed.
func wantTook(t *testing.T, began time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(began); took != want {
		t.Errorf("took %s, want %s", took, want)
	}
}

// storeAll publishes messages, and waits until all are stored.
func storeAll(t *testing.T, i *Inspector, all ...*nats.Msg) {
	t.Helper()
	for _, m := range all {
		if err := i.Conn.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	natstest.Flush(t, i.Conn)
	synctest.Wait()
}

func to(subject string, header ...string) *nats.Msg {
	m := nats.NewMsg(subject)
	for n := 0; n < len(header); n += 2 {
		m.Header.Set(header[n], header[n+1])
	}
	return m
}

// hops returns a hop in a level, with its final due time.
func hops(i *Inspector, level, target string, n uint64, due time.Time) *nats.Msg {
	id := message.ID{Stream: "DELAY_INTAKE", Sequence: n, At: time.Now().UTC()}
	r := message.Request{ID: id.String(), Target: target, Accepted: id.At, Due: due.UTC()}
	m := nats.NewMsg(i.names.Hop(level, target))
	m.Header = nats.Header(r.HopHeader())
	return m
}

// consumersOf returns the number of consumers of a stream.
func consumersOf(t *testing.T, i *Inspector, stream string) int {
	t.Helper()
	st, err := i.JetStream.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.Consumers
}
