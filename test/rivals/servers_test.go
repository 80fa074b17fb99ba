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
	// serverDir is the environment variable with the data directory of a server. If the variable is set, the test binary
	// runs a nats-server.
	serverDir = "RIVALS_SERVER_DIR"
	// serverRoutes is the environment variable with the cluster addresses of all servers, that of this server first. It is
	// empty for a server without a cluster.
	serverRoutes = "RIVALS_SERVER_ROUTES"
)

// runServer runs a nats-server with default settings, and prints its addresses. It returns when stdin is closed, which
// also happens at the end of the parent process.
func runServer(dir, routes string) {
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
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	s.WaitForShutdown()
}

// join makes the server a member of a cluster, unless routes is empty.
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

// startServer starts a nats-server with an empty store.
func startServer(b testing.TB) *process {
	b.Helper()
	return startServers(b, 1)[0]
}

// startServers starts nats-servers with empty stores, and returns when they are healthy. Several servers are a cluster.
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
		natstest.NoError(b, p.cmd.Start())
		b.Cleanup(p.kill)
		ps = append(ps, p)
	}
	for _, p := range ps {
		if _, err := fmt.Fscanln(p.out, &p.url, &p.monitor); err != nil {
			b.Fatalf("read the addresses of the server: %v", err)
		}
	}
	for _, p := range ps {
		p.awaitHealthy()
	}
	return ps
}

func (ps processes) urls() string {
	var urls []string
	for _, p := range ps {
		urls = append(urls, p.url)
	}
	return strings.Join(urls, ",")
}

// awaitHealthy waits until the server is healthy. A server of a cluster is healthy only after an election.
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
			err = fmt.Errorf("status %s", r.Status)
		}
		if time.Now().After(deadline) {
			p.b.Fatalf("the server is not healthy after %s: %v", timeout, err)
		}
	}
}

// traffic has the numbers of messages that a server has received and sent.
type traffic struct {
	In        int64 `json:"in_msgs"`         // received from clients and from other servers
	InClient  int64 `json:"in_client_msgs"`  // received from clients
	OutClient int64 `json:"out_client_msgs"` // sent to clients
}

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
		p.b.Fatalf("read the traffic of the server: %v", err)
	}
	return t
}
