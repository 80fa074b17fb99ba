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

	"github.com/nats-io/nats-server/v2/server"
)

// Cluster is a cluster of three servers in this process, in real time.
type Cluster struct {
	Servers []*server.Server
	URL     string // of all servers
}

// RunCluster starts three servers, each with its own options, and returns when they have a leader. They stop when the
// test ends.
func RunCluster(t testing.TB, options func() server.Options) Cluster {
	t.Helper()
	var routes, all []string
	var servers []*server.Server
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
		servers, all = append(servers, s), append(all, s.ClientURL())
	}
	leads := func(s *server.Server) bool {
		return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(servers)
	}
	Await(t, "the cluster has a leader", func() bool { return slices.ContainsFunc(servers, leads) })
	return Cluster{servers, strings.Join(all, ",")}
}

// given holds the ports that were handed out. A process may not listen on them yet.
var given struct {
	sync.Mutex
	ports map[int]bool
}

// FreeAddress returns one address of FreeAddresses. A broker can listen on it again after a restart.
func FreeAddress(t testing.TB) string {
	t.Helper()
	addresses, err := FreeAddresses(1)
	NoError(t, err)
	return addresses[0]
}

// FreeAddresses returns addresses whose ports are free. They lie below the range from which Linux takes the ports of
// outgoing connections. So no connection gets such a port while the process that listens on it is down.
func FreeAddresses(n int) ([]string, error) { return FreeAddressesOn("127.0.0.1", n) }

// FreeAddressesOn is like FreeAddresses, for another host address. A process that restarts servers needs a host address
// of its own, since the port of a server that is down looks free to other processes.
func FreeAddressesOn(host string, n int) ([]string, error) {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = make(map[int]bool)
	}
	var found []string
	for tries := 0; len(found) < n && tries < 1000; tries++ {
		port := 10_000 + rand.Intn(20_000)
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			continue
		}
		l.Close()
		given.ports[port] = true
		found = append(found, l.Addr().String())
	}
	if len(found) < n {
		return nil, fmt.Errorf("no free ports below 30000")
	}
	return found, nil
}
