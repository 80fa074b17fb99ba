//go:build linux

package fault

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestIdleLaneAfterDeathOfConsumerServer kills a server that has the consumer of an idle lane's reader. The server
// leads neither the lane nor the cluster, and the broker is not connected to it. A message that is published afterwards
// is at most 10 s late, and on an idle machine at most 2.5 s. With heartbeats every 5 s, it could be 12 s late.
func TestIdleLaneAfterDeathOfConsumerServer(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const maxLate = 10 * time.Second
	levels := []string{"1s", "2s", "3s", "4s", "5s"}
	dir, c, js := newClusterOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	late := make(map[string]time.Duration)
	if _, err := js.Conn().Subscribe("orders.>", func(m *nats.Msg) {
		due, err := time.Parse(time.RFC3339Nano, m.Header.Get(message.HeaderDue))
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		late[string(m.Data)] = time.Since(due)
	}); err != nil {
		t.Fatal(err)
	}
	dead, level := separateConsumer(t, ctx, js, dir, c, levels)
	leadCluster(t, c[0])
	proof, err := dead.kill()
	natstest.NoError(t, err)
	t.Logf("%s, with the consumer of delay.%s", proof, level)
	const count = 6
	for i := range count {
		natstest.NoError(t, retry(ctx, func(ctx context.Context) error {
			_, err := js.Publish(ctx, "delay."+level+".orders.x", fmt.Append(nil, i))
			return err
		}))
		time.Sleep(500 * time.Millisecond)
	}
	natstest.NoError(t, await(timeout, func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(late) < count {
			return fmt.Errorf("%d of %d arrived", len(late), count)
		}
		return nil
	}))
	for body, d := range late {
		t.Logf("%s: late by %s", body, d.Round(time.Millisecond))
		if d > maxLate {
			t.Errorf("message %s on delay.%s was late by %s, want %s at most", body, level, d.Round(time.Millisecond), maxLate)
		}
	}
}

// separateConsumer replaces the broker until the consumer of a level is on a server that does not lead the level. It
// may need several attempts, because nats-server places consumers at random. It returns the server and the level.
func separateConsumer(
	t *testing.T, ctx context.Context, js jetstream.JetStream, dir string, c cluster, levels []string,
) (*server, string) {
	t.Helper()
	for try := 1; ; try++ {
		if try > 10 {
			t.Fatal("in ten attempts, no consumer was on a server that does not lead its lane")
		}
		b := startBrokerAt(t, dir, try, c, c[0], strings.Join(levels, ","))
		time.Sleep(6 * time.Second) // until the lanes are idle, with their slower heartbeats
		for _, l := range levels {
			if s := separateServer(t, ctx, js, c, "DELAY_"+l); s != nil && s != c[0] {
				return s, l
			}
		}
		if _, err := b.terminate(); err != nil {
			t.Fatal(err)
		}
	}
}

// leadCluster makes a server the leader of the cluster, so that the test can kill or pause another server: only the
// leader of the cluster can create a consumer again.
func leadCluster(t *testing.T, s *server) {
	t.Helper()
	nc := connect(t, s.url(), nats.UserInfo("sys", "sys"))
	request := fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, s.name)
	natstest.NoError(t, await(timeout, func() error {
		leader, err := s.clusterLeader()
		if err != nil || leader == s.name {
			return err
		}
		if _, err := nc.Request("$JS.API.META.LEADER.STEPDOWN", request, 2*time.Second); err != nil {
			return err
		}
		return fmt.Errorf("%s leads", leader)
	}))
}

// clusterLeader returns the name of the leader of the cluster, as far as this server knows.
func (s *server) clusterLeader() (string, error) {
	var js struct {
		Cluster struct {
			Leader string `json:"leader"`
		} `json:"meta_cluster"`
	}
	err := s.decodePage("jsz", &js)
	return js.Cluster.Leader, err
}

// separateServer returns the server of a lane's consumer, or nil if the server leads the lane.
func separateServer(t *testing.T, ctx context.Context, js jetstream.JetStream, c cluster, stream string) *server {
	t.Helper()
	s, err := js.Stream(ctx, stream)
	natstest.NoError(t, err)
	list := s.ListConsumers(ctx)
	var found *server
	for info := range list.Info() {
		if strings.HasPrefix(info.Name, lane.ConsumerPrefix) && info.Cluster != nil &&
			info.Cluster.Leader != s.CachedInfo().Cluster.Leader {
			found = c.byName(info.Cluster.Leader)
		}
	}
	natstest.NoError(t, list.Err())
	return found
}

// TestCleanStopBehindALaggingReplica: a clean stop removes, one by one, the delivered messages behind a message that is
// not due yet. A replica that has not applied the removals still shows these messages to the next broker. The next
// broker sends none of them again.
func TestCleanStopBehindALaggingReplica(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	rounds, count := 1, 1000 // on a busy machine, the broker cannot remove many more before the end of its grace period
	if *long {
		rounds, count = 6, 6000
	}
	dir, c, js := newClusterOf(t)
	leadCluster(t, c[0])
	seen := harness.WrapConn(t, js.Conn()).Tally("orders.>")
	published := 0
	for round := range rounds {
		b := startBrokerAt(t, dir, 2*round+1, c, c[0], "10s,1m")
		// This message waits on the wheel, at the head of the lane.
		if _, err := js.Publish(t.Context(), "delayin.9500ms.orders.head", nil); err != nil {
			t.Fatal(err)
		}
		for range count {
			_, err := js.PublishAsync("delayin.10ms.orders.x", []byte("x"), jetstream.WithStallWait(timeout))
			natstest.NoError(t, err)
		}
		<-js.PublishAsyncComplete()
		published += count + 1
		seen.Await(published-1, 8*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		err := leadFrom(ctx, js, c[0]) // the server that will be paused leads no stream
		cancel()
		natstest.NoError(t, err)
		s, err := js.Stream(t.Context(), intake)
		natstest.NoError(t, err)
		var slow *server
		for _, other := range c[1:] { // the test and the broker are connected to the first server
			if other.name != s.CachedInfo().Cluster.Leader {
				slow = other
			}
		}
		if _, err := slow.pause(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.terminate(); err != nil {
			t.Error(err)
		}
		natstest.NoError(t, slow.resume())
		successor := startBrokerAt(t, dir, 2*round+2, c, c[0], "10s,1m")
		seen.Await(published, timeout)
		if _, err := successor.terminate(); err != nil {
			t.Error(err)
		}
		if n, d := seen.Count(); d != n {
			t.Errorf("round %d: after clean stops, %d messages had %d deliveries", round, n, d)
		}
	}
}

// startBrokerAt starts a broker that reaches only one server of a cluster.
func startBrokerAt(t *testing.T, dir string, number int, c cluster, s *server, levels string) *broker {
	t.Helper()
	b, err := newBroker(dir, testedPrograms.broker, number, c, levels)
	natstest.NoError(t, err)
	b.stayAt(s)
	t.Cleanup(b.end)
	natstest.NoError(t, b.run())
	return b
}

func connect(t *testing.T, url string, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, options...)
	natstest.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// newClusterOf starts a cluster without brokers, and returns its directory and a client.
func newClusterOf(t *testing.T) (dir string, c cluster, js jetstream.JetStream) {
	t.Helper()
	dir = t.TempDir()
	c, err := newCluster(dir, testedPrograms.server, quota)
	natstest.NoError(t, err)
	t.Cleanup(c.end)
	natstest.NoError(t, c.start())
	if js, err = jetstream.New(connect(t, c[0].url(), nats.MaxReconnects(-1))); err != nil {
		t.Fatal(err)
	}
	return dir, c, js
}
