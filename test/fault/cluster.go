//go:build linux

package fault

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"delaybroker/test/natstest"
)

const servers = 3

// loopback is an address that only this process uses, so that several suites can run on one machine: no other suite
// takes the port of a server that is down. Linux answers on all of 127.0.0.0/8.
var loopback = fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()>>16&63, os.Getpid()>>8&255, os.Getpid()&255)

// quota is the usual storage limit of the account (see plan.quota), for all replicas together. It is low, so that it
// can be filled in seconds. It limits the account and not the servers, because a server at its own limit also gives up
// leadership and drops the entries of its Raft groups.
const quota = 256 << 20

// catchUp is the time that a server has to catch up with the others before it is restarted.
const catchUp = 20 * time.Second

type server struct {
	*process
	address string // for clients
	route   string // the address for other servers
	monitor string
	routes  []*proxy // the proxies to the other servers
}

func (s *server) url() string { return "nats://" + s.address }

type cluster []*server

// newCluster prepares the servers below dir. It does not start them. The parameter quota limits the account's storage
// in bytes. The account has an administrator and the given users.
func newCluster(dir, binary string, quota int, users ...string) (cluster, error) {
	var c cluster
	for i := range servers {
		name := fmt.Sprintf("n%d", i+1)
		ports, err := natstest.FreeAddressesOn(loopback, 3)
		if err != nil {
			return nil, err
		}
		home := filepath.Join(dir, name)
		if err := os.Mkdir(home, 0o755); err != nil {
			return nil, err
		}
		c = append(c, &server{
			process: &process{name: name, command: []string{binary, "-c", filepath.Join(home, "nats.conf")},
				log: filepath.Join(home, "log")},
			address: ports[0], route: ports[1], monitor: ports[2],
		})
	}
	for _, s := range c {
		var routes []string
		for _, other := range c {
			if other == s {
				continue
			}
			p, err := newProxy(other.route)
			if err != nil {
				return nil, err
			}
			s.routes = append(s.routes, p)
			routes = append(routes, "nats://"+p.address())
		}
		home := filepath.Dir(s.log)
		// Servers do not advertise their routes. Otherwise they would connect to each other without the proxies. Pings are
		// frequent, so that a server detects a silent network within the run.
		conf := fmt.Sprintf(`server_name: %s
listen: %q
http: %q
ping_interval: "2s"
ping_max: 2
lame_duck_duration: "30s"
lame_duck_grace_period: "1s"
jetstream { store_dir: %q, max_memory_store: 1GB, max_file_store: 4GB }
accounts {
  APP { users: [{ user: app, password: app } %s], jetstream { max_mem: 1GB, max_file: %d } }
  SYS { users: [{ user: sys, password: sys }] }
}
system_account: SYS
no_auth_user: app
cluster { name: fault, listen: %q, no_advertise: true, routes: [%s] }
`, s.name, s.address, s.monitor, filepath.Join(home, "data"), strings.Join(users, " "), quota, s.route,
			strings.Join(routes, ", "))
		if err := os.WriteFile(filepath.Join(home, "nats.conf"), []byte(conf), 0o644); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// start starts the servers that do not run, and waits until the cluster is healthy.
func (c cluster) start() error {
	for _, s := range c {
		if !s.running() {
			if err := s.start(); err != nil {
				return err
			}
		}
	}
	return c.awaitHealthy()
}

func (c cluster) awaitHealthy() error {
	for _, s := range c {
		if err := s.awaitHealthy(timeout); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) awaitHealthy(maxTime time.Duration) error {
	if err := await(maxTime, func() error { return get("http://" + s.monitor + "/healthz") }); err != nil {
		return fmt.Errorf("%s is not healthy after %s: %w", s.name, maxTime, err)
	}
	return nil
}

// recover waits after a fault until every server is healthy. It restarts the servers that do not catch up within
// catchUp, as an operator would, and returns their names. A replica of nats-server 2.15.2 that was cut off may never
// catch up ("Expected first catchup entry to be a snapshot and peerstate, will retry").
func (c cluster) recover() ([]string, error) {
	var restarted []string
	for _, s := range c {
		if s.awaitHealthy(catchUp) == nil {
			continue
		}
		if _, err := s.terminate(); err != nil {
			return restarted, err
		}
		if err := s.start(); err != nil {
			return restarted, err
		}
		restarted = append(restarted, s.name)
	}
	return restarted, c.awaitHealthy()
}

// proxies returns all proxies between a server and the others, in both directions.
func (c cluster) proxies(s *server) []*proxy {
	all := append([]*proxy(nil), s.routes...)
	for _, other := range c {
		for _, p := range other.routes {
			if p.to == s.route {
				all = append(all, p)
			}
		}
	}
	return all
}

// byName returns the server with a name, or nil.
func (c cluster) byName(name string) *server {
	for _, s := range c {
		if s.name == name {
			return s
		}
	}
	return nil
}

// urls returns the URLs of all servers, beginning with c[first].
func (c cluster) urls(first int) string {
	var urls []string
	for i := range c {
		urls = append(urls, c[(first+i)%len(c)].url())
	}
	return strings.Join(urls, ",")
}

func (c cluster) end() {
	for _, s := range c {
		s.end()
		for _, p := range s.routes {
			p.close()
		}
	}
}

func (s *server) decodePage(page string, into any) error {
	client := http.Client{Timeout: 2 * time.Second}
	r, err := client.Get("http://" + s.monitor + "/" + page)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return fmt.Errorf("%s of %s: %w", page, s.name, err)
	}
	return nil
}

// get requests the URL of a health check, and returns an error unless the status is 200.
func get(url string) error {
	client := http.Client{Timeout: 2 * time.Second}
	r, err := client.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s", url, r.Status)
	}
	return nil
}
