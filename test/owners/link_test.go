package owners

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// cable forwards TCP connections to one address until it is cut or frozen.
type cable struct {
	net.Listener
	frozen chan struct{} // closed by freeze
	ended  chan struct{} // closed at the end of the test

	mu   sync.Mutex // guards the fields below
	cut  bool
	open map[net.Conn]bool
}

func newCable(t testing.TB, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	natstest.NoError(t, err)
	c := &cable{Listener: l, frozen: make(chan struct{}), ended: make(chan struct{}), open: make(map[net.Conn]bool)}
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			c.mu.Lock()
			if err != nil || c.cut {
				in.Close()
				if out != nil {
					out.Close()
				}
			} else {
				c.open[in], c.open[out] = true, true
				carry := func(from, to net.Conn) { _, _ = io.Copy(to, held{from, c}); from.Close(); to.Close() }
				carrying.Go(func() { carry(in, out) })
				carrying.Go(func() { carry(out, in) })
			}
			c.mu.Unlock()
		}
	})
	t.Cleanup(func() { l.Close(); close(c.ended); c.set(true); carrying.Wait() })
	return c
}

// held reads from a connection until the cable is frozen, and then waits for the end of the test.
type held struct {
	net.Conn
	cable *cable
}

func (h held) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	select {
	case <-h.cable.frozen:
		<-h.cable.ended
	default:
	}
	return n, err
}

// freeze makes the cable hold all bytes back, and close nothing, until the end of the test.
func (c *cable) freeze() { close(c.frozen) }

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for conn := range c.open {
		if cut {
			conn.Close()
			delete(c.open, conn)
		}
	}
}

// leafOf starts a leaf node without JetStream. A cable connects the leaf node to the hub.
func leafOf(t *testing.T, hub *natstest.Server, cluster string) (*natstest.Server, *cable) {
	t.Helper()
	v, err := hub.Server().Varz(nil)
	natstest.NoError(t, err)
	link := newCable(t, fmt.Sprintf("127.0.0.1:%d", v.LeafNode.Port))
	u, err := url.Parse("nats-leaf://" + link.Addr().String())
	natstest.NoError(t, err)
	opts := server.Options{Host: "127.0.0.1", Port: -1, ServerName: "leaf", LeafNode: server.LeafNodeOpts{
		ReconnectInterval: 200 * time.Millisecond, Remotes: []*server.RemoteLeafOpts{{URLs: []*url.URL{u}}},
	}}
	if cluster != "" {
		opts.Cluster = server.ClusterOpts{Name: cluster, Host: "127.0.0.1", Port: -1}
	}
	leaf := natstest.RunWith(t, opts)
	natstest.Await(t, "the leaf node is connected", func() bool { return hub.Server().NumLeafNodes() > 0 })
	return leaf, link
}

func newHub(t *testing.T) *natstest.Server {
	return natstest.RunWith(t, server.Options{
		Host: "127.0.0.1", Port: -1, ServerName: "hub", JetStream: true, JetStreamDomain: "hub",
		LeafNode: server.LeafNodeOpts{Host: "127.0.0.1", Port: -1, NoAdvertise: true},
	})
}

// TestTwoOwnersEnd: an instance behind a leaf node is replaced while the link of the leaf node is down. The connection
// of the instance stays up, so the instance does not notice the outage. The new instance delivers. When the link is
// back, only one of them stays active, and every message arrives once. The test runs in real time.
func TestTwoOwnersEnd(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	hub := newHub(t)
	leaf, link := leafOf(t, hub, "")
	cfg := func() broker.Config {
		return broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m"), Leaser: harness.Together, JSDomain: "hub", Replicas: 1}
	}
	a := harness.StartBroker(t, leaf, cfg())
	c := harness.NewClient(t, hub)
	link.set(true)
	b := harness.StartBroker(t, hub, cfg(), nats.PingInterval(5*time.Second))
	natstest.Await(t, "b takes over from the instance that cannot be reached", func() bool {
		return harness.Active(t, b) == 0
	})
	in := c.Subscribe("mail.>")
	for range 5 {
		c.Publish("delay.1s.mail.x", "")
	}
	in.Await(5)
	harness.CheckCount(t, in.Arrivals(), 5)
	link.set(false)
	natstest.Await(t, "only one of them is active", func() bool { return works(a) != works(b) })
	checkEachOnce(c, 30, 50*time.Millisecond)
}

// works reports whether an instance works the lanes.
func works(i *harness.Instance) bool { return i.Broker.Status().Lanes[0].Owned }

// checkEachOnce publishes messages at an interval in real time, and expects each to arrive once.
func checkEachOnce(c *harness.Client, count int, interval time.Duration) {
	c.T.Helper()
	in := c.Subscribe("orders.>")
	for i := range count {
		c.Publish("delay.1s.orders.x", fmt.Sprint(i))
		time.Sleep(interval)
	}
	in.Await(count)
	time.Sleep(time.Second) // for duplicates
	harness.CheckCount(c.T, in.Arrivals(), count)
}

// TestReplicasBehindLeaf: a broker connects to a cluster without JetStream, a leaf node of a single JetStream server.
// The broker's streams have one replica.
func TestReplicasBehindLeaf(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	leaf, _ := leafOf(t, hub, "edge")
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), Leaser: harness.Together, JSDomain: "hub"}
	harness.StartBroker(t, leaf, cfg).Stop()
	harness.StartBroker(t, leaf, cfg)
	c := harness.NewClient(t, hub)
	for info := range c.JS.ListStreams(t.Context()).Info() {
		if info.Config.Replicas != 1 {
			t.Errorf("%s has %d replicas, want 1", info.Config.Name, info.Config.Replicas)
		}
	}
}

// soon is shorter than the 5 s without a heartbeat after which an instance counts as dead. On a busy machine, the
// second start may be slower than the first start by this time, although only the first start creates streams.
const soon = 4 * time.Second

// TestStandbyOfEmbedded: a second broker uses the server that the first one embeds, and stands by. Each message arrives
// once.
func TestStandbyOfEmbedded(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	address := natstest.FreeAddress(t)
	natstest.StartBroker(t, "DELAY_EMBEDDED_DIR="+natstest.Dir(t), "DELAY_EMBEDDED_LISTEN="+address, "NATS_URL=")
	c := harness.NewReconnectingClient(t, address)
	other := natstest.StartBroker(t, "NATS_URL=nats://"+address)
	checkEachOnce(c, 80, 100*time.Millisecond)
	other.Terminate()
}

// TestKilledBrokerResumes: a killed broker starts again at the same address, or on the same directory. The other
// instances recognise the broker by the address or the directory. So the broker is active before the missing
// heartbeats of the old process would show a crash.
func TestKilledBrokerResumes(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	s := natstest.RunListening(t)
	for name, env := range map[string][]string{
		"address": {"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create",
			"DELAY_HTTP_ADDR=" + natstest.FreeAddress(t)},
		"directory": {
			"NATS_URL=", "DELAY_EMBEDDED_DIR=" + natstest.Dir(t), "DELAY_EMBEDDED_LISTEN=" + natstest.FreeAddress(t),
		},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			natstest.StartBroker(t, env...).Crash()
			first := time.Since(start)
			start = time.Now()
			natstest.StartBroker(t, env...).Crash()
			took := time.Since(start)
			t.Logf("first ready after %s, and after the restart after %s", first, took)
			if took > first+soon {
				t.Errorf("ready %s after the restart, want less than %s, the duration of the first start, plus %s", took, first,
					soon)
			}
		})
	}
}
