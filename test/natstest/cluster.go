package natstest

import (
	"fmt"
	"math/rand"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Cluster is three servers in this process, in real time.
type Cluster struct {
	Servers []*server.Server
	URL     string // the addresses of all servers

	options []*server.Options
}

// RunCluster starts three servers, and waits until they have a leader. It calls options once for each server. The
// servers stop when the test ends.
func RunCluster(t testing.TB, options func() server.Options) Cluster {
	t.Helper()
	var routes, all []string
	var c Cluster
	for range 3 {
		routes = append(routes, "nats://"+FreeAddress(t))
	}
	for i, route := range routes {
		host, port, err := net.SplitHostPort(strings.TrimPrefix(route, "nats://"))
		NoError(t, err)
		opts := options()
		opts.ServerName, opts.Host, opts.Port = fmt.Sprintf("n%d", i), host, server.RANDOM_PORT
		opts.JetStream, opts.StoreDir, opts.NoSigs, opts.NoLog = true, Dir(t), true, true
		opts.Cluster.Name, opts.Cluster.Host = "tested", host
		if opts.Cluster.Port, err = strconv.Atoi(port); err != nil {
			t.Fatal(err)
		}
		opts.Routes = server.RoutesFromStr(strings.Join(routes, ","))
		c.options, c.Servers = append(c.options, &opts), append(c.Servers, nil)
		c.start(t, i)
		opts.Port = c.Servers[i].Addr().(*net.TCPAddr).Port // of later starts
		all = append(all, c.Servers[i].ClientURL())
	}
	leads := func(s *server.Server) bool {
		return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(c.Servers)
	}
	Await(t, "the cluster has a leader", func() bool { return slices.ContainsFunc(c.Servers, leads) })
	c.URL = strings.Join(all, ",")
	return c
}

// Restart stops a server, and starts it again after a time, with its address and its data.
func (c Cluster) Restart(t testing.TB, i int, down time.Duration) {
	t.Helper()
	c.Servers[i].Shutdown()
	c.Servers[i].WaitForShutdown()
	time.Sleep(down)
	c.start(t, i)
}

func (c Cluster) start(t testing.TB, i int) {
	t.Helper()
	opts := *c.options[i]
	s, err := server.NewServer(&opts)
	NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(Timeout) {
		t.Fatalf("the server does not listen after %v", Timeout)
	}
	c.Servers[i] = s
}

// reserved has the ports that FreeAddressesOn has returned. Such a port looks free until its process listens.
var reserved struct {
	sync.Mutex
	ports map[int]bool
}

// FreeAddress is like FreeAddresses, for one address.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	NoError(t, err)
	return addresses[0]
}

// FreeAddresses returns n addresses with free ports, below the range from which Linux takes the ports of outgoing
// connections. So no connection takes the port during a restart of the process that listens.
func FreeAddresses(n int) ([]string, error) { return FreeAddressesOn("127.0.0.1", n) }

// FreeAddressesOn is like FreeAddresses, for another host address. A test process that restarts servers needs its own
// host address, because the port of a stopped server looks free to other test processes.
func FreeAddressesOn(host string, n int) ([]string, error) {
	reserved.Lock()
	defer reserved.Unlock()
	if reserved.ports == nil {
		reserved.ports = make(map[int]bool)
	}
	var found []string
	for tries := 0; len(found) < n && tries < 1000; tries++ {
		port := 10_000 + rand.Intn(20_000)
		if reserved.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) // on all hosts, as some tests do with the port
		if err != nil {
			continue
		}
		l.Close()
		reserved.ports[port] = true
		found = append(found, fmt.Sprintf("%s:%d", host, port))
	}
	if len(found) < n {
		return nil, fmt.Errorf("no free ports below 30000")
	}
	return found, nil
}
