package rivals_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/test/natstest"
)

const (
	// serverDir is an environment variable. It makes the test binary a nats-server with its data in that directory.
	serverDir = "RIVALS_SERVER_DIR"
	// serverRoutes makes that server part of a cluster: the routes of all servers, its own first.
	serverRoutes = "RIVALS_SERVER_ROUTES"
)

// beServer runs a nats-server with default settings, prints its addresses, and ends with its parent process.
func beServer(dir, routes string) {
	opts := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
		JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	}
	if err := join(opts, routes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		os.Exit(1)
	}
	fmt.Println(s.ClientURL(), "http://"+s.MonitorAddr().String())
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is closed
	s.Shutdown()
	s.WaitForShutdown()
}

// join adds the server to a cluster if there are routes.
func join(opts *server.Options, routes string) error {
	if routes == "" {
		return nil
	}
	own, others, _ := strings.Cut(routes, ",")
	host, port, err := net.SplitHostPort(own)
	if err != nil {
		return err
	}
	opts.ServerName = "port-" + port
	opts.Cluster = server.ClusterOpts{Name: "rivals", Host: host}
	if opts.Cluster.Port, err = strconv.Atoi(port); err != nil {
		return err
	}
	for other := range strings.SplitSeq(others, ",") {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: other})
	}
	return nil
}

// startServer runs a nats-server with an empty store.
func startServer(b testing.TB) *process {
	b.Helper()
	return startServers(b, 1)[0]
}

// startServers runs nats-servers with empty stores, one alone or a cluster, until they are healthy.
func startServers(b testing.TB, n int) processes {
	b.Helper()
	routes := make([]string, n)
	if n > 1 {
		var err error
		if routes, err = natstest.FreeAddresses(n); err != nil {
			b.Fatal(err)
		}
	}
	var ps processes
	for i := range n {
		p := &process{b: b, cmd: exec.Command(os.Args[0])}
		order := append(append([]string{routes[i]}, routes[:i]...), routes[i+1:]...)
		p.cmd.Env = append(os.Environ(), serverDir+"="+b.TempDir(), serverRoutes+"="+strings.Join(order, ","))
		p.cmd.Stderr = b.Output()
		var err error
		if p.in, err = p.cmd.StdinPipe(); err != nil {
			b.Fatal(err)
		}
		if p.out, err = p.cmd.StdoutPipe(); err != nil {
			b.Fatal(err)
		}
		if err := p.cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(p.kill)
		ps = append(ps, p)
	}
	for _, p := range ps {
		if _, err := fmt.Fscanln(p.out, &p.url, &p.monitor); err != nil {
			b.Fatalf("the server says no address: %v", err)
		}
	}
	for _, p := range ps {
		p.awaitHealthy()
	}
	return ps
}

// urls are the addresses of all servers.
func (ps processes) urls() string {
	var urls []string
	for _, p := range ps {
		urls = append(urls, p.url)
	}
	return strings.Join(urls, ",")
}

// awaitHealthy waits until a server has JetStream. In a cluster that needs an election.
func (p *process) awaitHealthy() {
	p.b.Helper()
	const poll, timeout = 50 * time.Millisecond, 30 * time.Second
	for deadline := time.Now().Add(timeout); ; time.Sleep(poll) {
		r, err := http.Get(p.monitor + "/healthz")
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("it says %s", r.Status)
		}
		if time.Now().After(deadline) {
			p.b.Fatalf("the server is not healthy after %s: %v", timeout, err)
		}
	}
}

// traffic is how many messages a server has received and sent.
type traffic struct {
	In        int64 `json:"in_msgs"`         // from clients and other servers
	InClient  int64 `json:"in_client_msgs"`  // from clients
	OutClient int64 `json:"out_client_msgs"` // to clients
}

// traffic is the sum over all servers.
func (ps processes) traffic() traffic {
	var sum traffic
	for _, p := range ps {
		t := p.traffic()
		sum.In += t.In
		sum.InClient += t.InClient
		sum.OutClient += t.OutClient
	}
	return sum
}

func (p *process) traffic() (t traffic) {
	p.b.Helper()
	r, err := http.Get(p.monitor + "/varz")
	if err == nil {
		err = json.NewDecoder(r.Body).Decode(&t)
		r.Body.Close()
	}
	if err != nil {
		p.b.Fatalf("ask the server for its traffic: %v", err)
	}
	return t
}
