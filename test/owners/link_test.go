package owners

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// cable forwards TCP connections to one address until it is cut.
type cable struct {
	net.Listener
	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: l, open: make(map[net.Conn]bool)}
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
				carry := func(from, to net.Conn) { _, _ = io.Copy(to, from); from.Close(); to.Close() }
				carrying.Go(func() { carry(in, out) })
				carrying.Go(func() { carry(out, in) })
			}
			c.mu.Unlock()
		}
	})
	t.Cleanup(func() { l.Close(); c.set(true); carrying.Wait() })
	return c
}

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

// leafOf starts a server without JetStream, as a leaf node connected to the hub by a cable.
func leafOf(t *testing.T, hub *natstest.Server, cluster string) (*natstest.Server, *cable) {
	t.Helper()
	v, err := hub.Server().Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	link := newCable(t, fmt.Sprintf("127.0.0.1:%d", v.LeafNode.Port))
	u, err := url.Parse("nats-leaf://" + link.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	opts := server.Options{Host: "127.0.0.1", Port: -1, ServerName: "leaf", LeafNode: server.LeafNodeOpts{
		ReconnectInterval: 200 * time.Millisecond, Remotes: []*server.RemoteLeafOpts{{URLs: []*url.URL{u}}},
	}}
	if cluster != "" {
		opts.Cluster = server.ClusterOpts{Name: cluster, Host: "127.0.0.1", Port: -1}
	}
	leaf := natstest.RunWith(t, opts)
	for end := time.Now().Add(10 * time.Second); hub.Server().NumLeafNodes() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the leaf node does not connect")
		}
	}
	return leaf, link
}

func newHub(t *testing.T) *natstest.Server {
	return natstest.RunWith(t, server.Options{
		Host: "127.0.0.1", Port: -1, ServerName: "hub", JetStream: true, JetStreamDomain: "hub", StoreDir: t.TempDir(),
		LeafNode: server.LeafNodeOpts{Host: "127.0.0.1", Port: -1, NoAdvertise: true},
	})
}

// TestTwoOwnersEnd: an instance behind a leaf node is replaced while the link of the leaf node is down. Its own
// connection stays up, so it does not notice. When the link is back, the two agree on the lanes, and every message
// comes once. The test runs in real time.
func TestTwoOwnersEnd(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	hub := newHub(t)
	leaf, link := leafOf(t, hub, "")
	cfg := func() broker.Config {
		return broker.Config{Ladder: harness.Ladder(t, "1s 5s 1m"), MaxOwners: 3, JSDomain: "hub", Replicas: 1}
	}
	a := harness.StartBroker(t, leaf, cfg())
	c := harness.NewClient(t, hub)
	in := c.Subscribe("orders.>")
	link.set(true)
	b := harness.StartBroker(t, hub, cfg(), nats.PingInterval(5*time.Second))
	for end := time.Now().Add(natstest.Timeout); harness.OwnedLanes(b) == ""; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody takes over from the instance that cannot be reached")
		}
	}
	link.set(false)
	twice := func() (lanes []string) {
		for _, l := range strings.Fields(harness.OwnedLanes(a)) {
			if strings.Contains(" "+harness.OwnedLanes(b)+" ", " "+l+" ") {
				lanes = append(lanes, l)
			}
		}
		return lanes
	}
	for end := time.Now().Add(natstest.Timeout); len(twice()) > 0 ||
		harness.OwnedLanes(a) == ""; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the link is back, and a owns %q, b %q", harness.OwnedLanes(a), harness.OwnedLanes(b))
		}
	}
	for i := range 30 {
		c.Publish("delay.1s.orders.x", fmt.Sprint(i))
		time.Sleep(50 * time.Millisecond)
	}
	in.Await(30)
	time.Sleep(time.Second) // for copies
	if got := len(in.All()); got != 30 {
		t.Errorf("%d deliveries of 30 messages", got)
	}
}

// TestReplicasBehindLeaf: a broker connects to a cluster without JetStream, a leaf node of a single JetStream server.
// Its streams have one replica.
func TestReplicasBehindLeaf(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	leaf, _ := leafOf(t, hub, "edge")
	cfg := broker.Config{Ladder: harness.Ladder(t, "1s 5s"), MaxOwners: 3, JSDomain: "hub"}
	harness.StartBroker(t, leaf, cfg).Stop()
	harness.StartBroker(t, leaf, cfg)
	c := harness.NewClient(t, hub)
	for info := range c.JS.ListStreams(t.Context()).Info() {
		if info.Config.Replicas != 1 {
			t.Errorf("%s has %d replicas, want 1", info.Config.Name, info.Config.Replicas)
		}
	}
}
