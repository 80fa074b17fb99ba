//go:build linux

package fault

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/stats"
	"delaybroker/test/natstest"
)

// single prepares a server of its own with some configuration; it listens on the address returned.
func single(t *testing.T, name, conf string) (*process, string) {
	t.Helper()
	home := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	ports, err := natstest.FreeAddressesOn(loopback, 1)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "nats.conf")
	conf = fmt.Sprintf("server_name: %s\nlisten: %q\n", name, ports[0]) + conf
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	return &process{name: name, command: []string{built.server, "-c", file}, log: filepath.Join(home, "log")}, ports[0]
}

// TestTwoOwnersEndWithTheCut: a broker behind a leaf node is alone when the link goes down, and stays connected to its
// leaf. Another starts at the hub, and is alone as well. Seconds after the link is back, each lane has one owner again,
// and what is published from then on comes once.
func TestTwoOwnersEndWithTheCut(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	leafPort, err := natstest.FreeAddressesOn(loopback, 1)
	if err != nil {
		t.Fatal(err)
	}
	hub, hubAddress := single(t, "hub",
		fmt.Sprintf("jetstream { store_dir: %q, domain: hub }\nleafnodes { listen: %q, no_advertise: true }\n",
			t.TempDir(), leafPort[0]))
	link, err := newProxy(leafPort[0])
	if err != nil {
		t.Fatal(err)
	}
	defer link.close()
	leaf, leafAddress := single(t, "leaf",
		fmt.Sprintf("leafnodes { reconnect: 1, remotes: [{ url: \"nats-leaf://%s\" }] }\n", link.address()))
	for _, s := range []*process{hub, leaf} {
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		defer s.end()
	}
	nc, err := nats.Connect("nats://"+hubAddress, nats.RetryOnFailedConnect(true), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	startOnHub(t, 1, leafAddress)

	seen := newTally(t, nc, func(m *nats.Msg) string { return string(m.Data) })
	published := 0
	publish := func(what string, count int) {
		t.Helper()
		for i := range count {
			if _, err := js.Publish(t.Context(), "delay.1s.orders.x", fmt.Appendf(nil, "%s %d", what, i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		published += count
		seen.await(t, timeout, published)
		time.Sleep(time.Second) // for copies
	}
	publish("before", 5)
	if n, d := seen.count("before"); n != 5 || d != 5 {
		t.Fatalf("before the cut: %d messages came %d times, want 5 and 5", n, d)
	}
	link.set(refusing)
	startOnHub(t, 2, hubAddress)
	publish("meanwhile", 5)
	link.set(passing)
	awaitOneOwner(t, nc)
	publish("after", 20)
	if n, d := seen.count("after"); n != 20 || d != 20 {
		t.Errorf("after the link was back: %d messages came %d times, want 20 and 20", n, d)
	}
}

// awaitOneOwner waits until two instances answer, of which both own lanes, and none that the other owns.
func awaitOneOwner(t *testing.T, nc *nats.Conn) {
	t.Helper()
	if err := await(timeout, func() error {
		answers, err := nc.SubscribeSync("delayctl.status." + nats.NewInbox()[len(nats.InboxPrefix):])
		if err != nil {
			return err
		}
		defer func() { _ = answers.Unsubscribe() }() // fails only on a closed connection
		if err := nc.PublishRequest("delayctl.status", answers.Subject, nil); err != nil {
			return err
		}
		owners, lanes := make(map[string]string), make(map[string]int)
		for {
			m, err := answers.NextMsg(time.Second)
			if err != nil {
				break
			}
			var a stats.Answer
			if err := json.Unmarshal(m.Data, &a); err != nil {
				continue // nobody answers
			}
			for _, l := range a.Lanes {
				if other, owned := owners[l.Stream]; owned {
					return fmt.Errorf("%s and %s own %s", other, a.Instance, l.Stream)
				}
				owners[l.Stream] = a.Instance
				lanes[a.Instance]++
			}
		}
		if len(lanes) != 2 {
			return fmt.Errorf("lanes are owned by %v, want two owners", lanes)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// startOnHub starts a broker that reaches the hub's JetStream through the server at an address.
func startOnHub(t *testing.T, number int, address string) {
	t.Helper()
	b, err := newBroker(t.TempDir(), built.broker, number, nil, "1s,5s")
	if err != nil {
		t.Fatal(err)
	}
	b.env = append(b.env, "NATS_URL=nats://"+address, "DELAY_JS_DOMAIN=hub", "DELAY_STREAM_REPLICAS=1")
	t.Cleanup(b.end)
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
}

// tally counts the messages on orders.>, by a key.
type tally struct {
	mu   sync.Mutex
	seen map[string]int
}

func newTally(t *testing.T, nc *nats.Conn, key func(*nats.Msg) string) *tally {
	t.Helper()
	c := &tally{seen: make(map[string]int)}
	if _, err := nc.Subscribe("orders.>", func(m *nats.Msg) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen[key(m)]++
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// count is the number of messages whose key begins so, and of their deliveries.
func (c *tally) count(prefix string) (messages, deliveries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, n := range c.seen {
		if strings.HasPrefix(k, prefix) {
			messages, deliveries = messages+1, deliveries+n
		}
	}
	return messages, deliveries
}

// await waits until so many messages have come.
func (c *tally) await(t *testing.T, most time.Duration, want int) {
	t.Helper()
	if err := await(most, func() error {
		if n, _ := c.count(""); n < want {
			return fmt.Errorf("%d of %d came", n, want)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// atServer makes a broker reach one server of a cluster and no other.
func atServer(t *testing.T, dir string, number int, c cluster, s *server, levels string) *broker {
	t.Helper()
	b, err := newBroker(dir, built.broker, number, c, levels)
	if err != nil {
		t.Fatal(err)
	}
	b.stayAt(s)
	t.Cleanup(b.end)
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	return b
}

// newClusterOf starts a cluster without anything else.
func newClusterOf(t *testing.T) (dir string, c cluster, js jetstream.JetStream) {
	t.Helper()
	dir = t.TempDir()
	c, err := newCluster(dir, built.server, quota)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.end)
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(c[0].url(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	return dir, c, js
}
