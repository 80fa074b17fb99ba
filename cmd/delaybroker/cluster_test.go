package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestReadsOnCluster runs every reading command, and reads the page, on each server of a healthy cluster in turn, while
// leaders change. No read may fail. Then a server dies, and doctor names it. The environment variable READS is the
// number of reads, 100 by default.
func TestReadsOnCluster(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	n, _ := strconv.Atoi(cmp.Or(os.Getenv("READS"), "100"))
	c := runReadCluster(t)
	address, streams := c.fill()
	reads := []string{
		"levels", "levels --json", "streams", "ahead", "ahead --target orders.>", "pending", "pending ls",
		"pending ls --target orders.a", "retrying", "where DELAY_INTAKE-2", "where DELAY_5s-1", "journal", "dead ls",
		"dead show 1", "timers ls", "timers show key-2 orders.a", "schedules ls", "schedules show every-hour",
		"doctor --json", "GET /api/look/pending/ls", "GET /api/ahead?span=1h",
		"GET /api/look/timers/ls", "GET /api/look/schedules/ls",
		"GET /api/look/dead/ls?by=code", "GET /api/look/dead/ls", "GET /api/look/retrying",
		"GET /api/look/where?id=DELAY_INTAKE-2",
	}
	failed := 0
	for i := range n {
		if i%10 == 9 {
			c.stepDown(streams[rand.Intn(len(streams))])
		}
		if i%10 == 4 {
			c.stepDownMeta()
		}
		read := reads[i%len(reads)]
		t.Setenv("NATS_URL", c.Servers[rand.Intn(len(c.Servers))].ClientURL())
		began := time.Now()
		if err := c.read(address, read); err != nil {
			failed++
			t.Errorf("read %d, %s, after %v: %v", i, read, time.Since(began), err)
		}
	}
	t.Logf("%d of %d reads failed", failed, n)

	// doctor names a dead server.
	lost := c.Servers[2]
	t.Setenv("NATS_URL", c.Servers[0].ClientURL())
	lost.Shutdown()
	eventually(t, "warning about the replicas of "+lost.Name(), func() bool {
		out, _, _ := runCommand(t, "", "doctor", "--json")
		return strings.Contains(out, `"check":"replicas","state":"warn"`) &&
			strings.Contains(out, "server "+lost.Name()+" is ") && strings.Contains(out, "one more failure stops these lanes")
	})
}

// A readCluster is a cluster of three servers, with the actions of the test.
type readCluster struct {
	natstest.Cluster
	t   *testing.T
	js  jetstream.JetStream
	sys *nats.Conn // a connection to the system account
}

func runReadCluster(t *testing.T) *readCluster {
	system := server.NewAccount("SYS")
	c := &readCluster{t: t, Cluster: natstest.RunCluster(t, func() server.Options {
		return server.Options{
			Accounts: []*server.Account{server.NewAccount("SYS")}, SystemAccount: system.Name, NoAuthUser: "any",
			Users: []*server.User{{Username: "any"}, {Username: "sys", Password: "sys", Account: system}},
		}
	})}
	var err error
	if c.sys, err = nats.Connect(c.URL, nats.UserInfo("sys", "sys")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.sys.Close)
	_, c.js = connect(t, c.URL)
	externalEnv(t, c.URL)
	return c
}

// fill runs a broker, and stores data for each command. It returns the broker's address and its streams.
func (c *readCluster) fill() (address string, streams []string) {
	c.t.Helper()
	for name, value := range map[string]string{
		"DELAY_PROVISION": "create", "DELAY_TIMERS": "on", "DELAY_JOURNAL": "1h", "DELAY_LEVELS": "1s 5s 1m 1h",
		"DELAY_HTTP_ROWS": "open",
	} {
		c.t.Setenv(name, value)
	}
	r := start(c.t)
	c.t.Cleanup(func() { r.stop(c.t) })
	address = fmt.Sprint("http://", r.log.await(c.t, "ready")["http"])
	for i := range 20 {
		target := []string{"orders.a", "orders.b"}[i%2]
		for _, subject := range []string{"delay.1h.", "delay.1m.", "delay.5s.", "delayin.47m."} {
			publish(c.t, c.js, subject+target, "x")
		}
		mustRunCommand(c.t, "", "pub", "--key", fmt.Sprint("key-", i), "--in", "2h", target, "x")
	}
	mustRunCommand(c.t, "", "schedules", "add", "every-hour", "--target", "orders.a", "--every", "1h", "x")
	publish(c.t, c.js, "delayin.soon.orders.a", "a dead letter")
	for name := range c.js.StreamNames(c.t.Context()).Name() {
		streams = append(streams, name)
	}
	slices.Sort(streams)
	eventually(c.t, "dead letter", func() bool {
		s, err := c.js.Stream(c.t.Context(), "DELAY_DEAD")
		return err == nil && s.CachedInfo().State.Msgs > 0
	})
	return address, streams
}

// read runs a command, or reads the page.
func (c *readCluster) read(address, read string) error {
	path, ok := strings.CutPrefix(read, "GET ")
	if !ok {
		out, errs, err := runCommand(c.t, "", strings.Fields(read)...)
		if errors.Is(err, errWarnings) {
			err = nil // doctor warns that the three servers share one disk
		}
		if err != nil {
			return fmt.Errorf("got %w\n%s%s", err, out, errs)
		}
		return nil
	}
	res, err := http.Get(address + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("got %d and %v\n%s", res.StatusCode, err, body)
	}
	return nil
}

// stepDown makes another server the leader of a stream, as in a rolling restart.
func (c *readCluster) stepDown(stream string) {
	c.t.Helper()
	for _, s := range c.Servers {
		if s.JetStreamIsStreamLeader("$G", stream) {
			natstest.NoError(c.t, s.JetStreamStepdownStream("$G", stream))
		}
	}
}

// stepDownMeta makes another server the leader of JetStream itself.
func (c *readCluster) stepDownMeta() {
	c.t.Helper()
	m, err := c.sys.Request("$JS.API.META.LEADER.STEPDOWN", nil, timeout)
	if err != nil || strings.Contains(string(m.Data), `"error"`) {
		c.t.Fatalf("got %v and %v", m, err)
	}
}
