package natstest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
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
