//go:build linux

package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// skew is the time by which the clock of one server is fast.
const skew = time.Minute

// TestFastClock runs a cluster in which the clock of one server is fast by skew. While that server leads a level, the
// level's messages are early by at most skew, and doctor names the server. Before and afterwards, none is early. None
// is lost or stored twice.
func TestFastClock(t *testing.T) {
	if !*long {
		t.Skip("NOT RUN: -fault.long is not set")
	}
	t.Parallel()
	dir := t.TempDir()
	c, err := newCluster(dir, buildFastServer(t), quota)
	natstest.NoError(t, err)
	t.Cleanup(c.end)
	fast := c[2]
	fast.env = []string{fmt.Sprintf("CLOCK_SKEW=%d", skew/time.Second)}
	natstest.NoError(t, c.start())
	client := harness.WrapConn(t, connect(t, c[0].url()))
	client.Create(jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, Replicas: servers})
	startBrokerAt(t, dir, 1, c, c[0], "30s,2m")
	lead := func(stream string, s *server) {
		t.Helper()
		request := &nats.Msg{
			Subject: "$JS.API.STREAM.LEADER.STEPDOWN." + stream,
			Data:    fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, s.name),
		}
		natstest.NoError(t, await(timeout, func() error {
			if leader := client.Stream(stream).CachedInfo().Cluster.Leader; leader != s.name {
				_, err := natstest.Request(client.NC, request, natstest.Timeout)
				return fmt.Errorf("%s leads %s: %w", leader, stream, err)
			}
			return nil
		}))
	}
	lead("ORDERS", c[0])
	const level, each = "DELAY_2m", 50
	publish := func(body string) {
		t.Helper()
		for range each {
			natstest.NoError(t, client.TryPublish("delay.2m.orders.x", body))
		}
	}
	lead(level, c[0])
	publish("due while the fast clock leads")
	time.Sleep(skew) // the fast clock shows the due time
	publish("due later")
	lead(level, fast)
	publish("by the fast clock") // the broker reads them, and asks the new leader for its time
	out, _, _ := natstest.RunCommand(t, []string{"NATS_URL=" + c[0].url()}, "doctor")
	if words := strings.Join(strings.Fields(out), " "); !strings.Contains(words, "the clock of "+fast.name+" is ") {
		t.Errorf("doctor does not name %s:\n%s", fast.name, out)
	}
	natstest.Await(t, "the first messages are early", func() bool { return harness.Pending(client, "ORDERS") == each })
	lead(level, c[0])
	publish("after the fast clock")
	natstest.NoError(t, await(5*time.Minute, func() error {
		if n := harness.Pending(client, "ORDERS"); n < 4*each {
			return fmt.Errorf("%d messages have arrived", n)
		}
		return nil
	}))
	count := make(map[string]int)
	for _, a := range client.Arrivals("ORDERS") {
		count[a.Body]++
		early := a.Due.Sub(a.At)
		switch a.Body {
		case "due while the fast clock leads":
			if early < skew/2 || early > skew {
				t.Errorf("%s: early by %s, want nearly %s", a.Body, early, skew)
			}
		default:
			if early > 0 {
				t.Errorf("%s: early by %s", a.Body, early)
			}
		}
	}
	for body, n := range count {
		if n != each {
			t.Errorf("%s: %d messages, want %d", body, n, each)
		}
	}
}

// buildFastServer builds a nats-server whose wall clock is fast by CLOCK_SKEW seconds: the compiler takes another
// source of time.Now.
func buildFastServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	natstest.NoError(t, err)
	source := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	natstest.NoError(t, err)
	const call = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	if bytes.Count(text, []byte(call)) != 1 {
		t.Fatalf("time.Now of %s does not begin with %q", runtime.Version(), call)
	}
	text = bytes.Replace(text, []byte(call), []byte(strings.Replace(call, "\n", "\n\tsec += skew\n", 1)), 1)
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for name, content := range map[string]string{"time.go": string(text), "skew.go": `package time

import "syscall"

var skew = func() (seconds int64) {
	text, _ := syscall.Getenv("CLOCK_SKEW")
	for _, digit := range text {
		seconds = 10*seconds + int64(digit-'0')
	}
	return seconds
}()
`} {
		file := filepath.Join(dir, name)
		natstest.NoError(t, os.WriteFile(file, []byte(content), 0o644))
		overlay.Replace[filepath.Join(source, name)] = file
	}
	list, err := json.Marshal(overlay)
	natstest.NoError(t, err)
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "nats-server")
	natstest.NoError(t, os.WriteFile(file, list, 0o644))
	build := exec.Command("go", "build", "-overlay", file, "-o", binary, "github.com/nats-io/nats-server/v2")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build nats-server: %v: %s", err, out)
	}
	return binary
}
