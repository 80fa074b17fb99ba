package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/streams"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/test/natstest"
)

// TestServeEmbedded covers the whole program: a delayed message, a stop, and a second start that delivers the remaining
// message.
func TestServeEmbedded(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	embeddedEnv(t)
	first := startReady(t)
	ready := first.ready
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/status", "/metrics"} {
		wantProbe(t, ready["http"], path, 200)
	}
	durability := "acknowledged means written to a file on this host, fsync every 1s " +
		"(replicas 1, nats-server " + server.VERSION + "): a crash loses nothing"
	wantBody(t, ready["http"], "/readyz", durability)
	wantBody(t, ready["http"], "/metrics",
		"\ndelaybroker_ready 1\n",
		`delaybroker_lane_owned{kind="level",lane="DELAY_5s"} 1`,
		`delaybroker_build_info{go_version="go1.`)
	if got, _ := ready["durability"].(string); !strings.HasPrefix(got, durability) {
		t.Errorf("durability: got %q, want %q", got, durability)
	}
	for key, want := range map[string]any{
		"prefix": "delay", "levels": 2.0, "server_version": server.VERSION,
	} {
		if got := ready[key]; got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}

	nc, js := connect(t, ready["server"].(string))
	sub := subscribe(t, nc, "x")
	sent := time.Now()
	publish(t, js, "delay.1s.x", "now or later")
	m := wantMessage(t, sub, "now or later")
	if took := time.Since(sent); took < time.Second {
		t.Errorf("got the message after %s, want at least 1s", took)
	}
	if m.Header.Get("Delay-Id") == "" {
		t.Errorf("got headers %v, want a Delay-Id", m.Header)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"y"}}); err != nil {
		t.Fatal(err)
	}
	publish(t, js, "delay.5s.y", "over a restart")
	first.stop(t)
	if _, err := http.Get(fmt.Sprintf("http://%s/healthz", ready["http"])); err == nil {
		t.Error("HTTP still answers after the stop")
	}
	if late, err := nats.Connect(ready["server"].(string)); err == nil {
		late.Close()
		t.Error("the embedded server still accepts connections after the stop")
	}

	second := startReady(t)
	_, js = connect(t, second.ready["server"].(string))
	if got, want := firstOf(t, js, "KEPT"), "over a restart"; got != want {
		t.Errorf("after the restart: got %q, want %q", got, want)
	}
	second.stop(t)
}

// firstOf waits for the first message of a stream.
func firstOf(t *testing.T, js jetstream.JetStream, stream string) string {
	t.Helper()
	consumer, err := js.OrderedConsumer(t.Context(), stream, jetstream.OrderedConsumerConfig{})
	natstest.NoError(t, err)
	kept, err := consumer.Next(jetstream.FetchMaxWait(timeout))
	natstest.NoError(t, err)
	return string(kept.Data())
}

// With DELAY_PROVISION=verify, serve creates no streams. With the default, the first start creates them.
func TestServeVerifies(t *testing.T) {
	s := startServer(t, server.Options{Port: server.RANDOM_PORT})
	externalEnv(t, s.ClientURL())
	t.Setenv("DELAY_PROVISION", "verify")
	err := start(t).end(t)
	if !errors.Is(err, streams.ErrMissingStreams) || !strings.Contains(fmt.Sprint(err), "DELAY_PROVISION=verify") {
		t.Errorf("got %v, want the missing streams and the advice", err)
	}
	if got, want := exitCode(err), 2; got != want {
		t.Errorf("exit code: got %d, want %d", got, want)
	}
	_, js := connect(t, s.ClientURL())
	for name := range js.StreamNames(t.Context()).Name() {
		t.Errorf("got stream %s, want none", name)
	}

	t.Setenv("DELAY_PROVISION", "")
	r := startReady(t)
	r.stop(t)
	t.Setenv("DELAY_PROVISION", "verify")
	r = start(t)
	// The log has the durability of the existing streams, not of the streams that the settings would create.
	got, want := fmt.Sprint(r.log.await(t, "ready")["durability"]), "written to a file by one server (replicas 1"
	if !strings.Contains(got, want) {
		t.Errorf("durability: got %q, want %q", got, want)
	}
	got, want = fmt.Sprint(r.log.await(t, "the durability has a weakness")["what"]), "1 replica of all "
	if !strings.Contains(got, want) {
		t.Errorf("weak: got %q, want %q", got, want)
	}
	r.stop(t)
}

// A broker that starts before NATS waits. It is alive, and not ready.
func TestServeWaitsForNATS(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	httpAddr, port := natstest.FreeAddress(t), freePort(t)
	externalEnv(t, fmt.Sprintf("nats://127.0.0.1:%d", port))
	t.Setenv("DELAY_PROVISION", "create")
	t.Setenv("DELAY_HTTP_ADDR", httpAddr)
	r := start(t)
	line := r.log.await(t, "a link cannot connect to NATS, and retries")
	if got, want := line["servers"], fmt.Sprintf("nats://127.0.0.1:%d", port); got != want {
		t.Errorf("servers: got %v, want %v", got, want)
	}
	wantProbe(t, httpAddr, "/healthz", 200)
	wantProbe(t, httpAddr, "/readyz", 503)

	startServer(t, server.Options{Port: port})
	if got, want := r.log.await(t, "ready")["server_version"], server.VERSION; got != want {
		t.Errorf("server version: got %v, want %v", got, want)
	}
	wantProbe(t, httpAddr, "/readyz", 200)
	r.stop(t)
}

// A stop does not wait for a server that is not reachable.
func TestServeStopsWithoutNATS(t *testing.T) {
	externalEnv(t, fmt.Sprintf("nats://127.0.0.1:%d", freePort(t)))
	r := start(t)
	r.log.await(t, "a link cannot connect to NATS, and retries")
	r.stop(t)
}

func TestServeHTTPPortInUse(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	embeddedEnv(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	natstest.NoError(t, err)
	defer l.Close()
	t.Setenv("DELAY_HTTP_ADDR", l.Addr().String())
	err = start(t).end(t)
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "DELAY_HTTP_ADDR") {
		t.Errorf("got %v, want an address in use and DELAY_HTTP_ADDR", err)
	}
}

// Signals, exit codes and the lock need a process.
func TestProcess(t *testing.T) {
	environ := []string{
		"DELAY_EMBEDDED_LISTEN=127.0.0.1:0", "DELAY_EMBEDDED_DIR=" + t.TempDir(), "DELAY_HTTP_ADDR=off", "DELAY_LEVELS=1s 5s",
		"DELAY_LEVLES=1s",
	}
	first, log := startProcess(t, environ...)
	if got, want := log.await(t, "the environment variable is not a setting; serve --help lists the settings")["nearest"],
		"DELAY_LEVELS"; got != want {
		t.Errorf("nearest: got %v, want %v", got, want)
	}
	ready := log.await(t, "ready")
	for _, name := range []string{"http", "page"} {
		if got, want := ready[name], "off"; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}

	second, err := command(t, nil, environ...).CombinedOutput()
	if code := exitCodeOf(err); code != 1 || !strings.Contains(string(second), embedded.ErrLocked.Error()) {
		t.Errorf("second process on one directory: got exit code %d, want 1 and %q in\n%s", code, embedded.ErrLocked, second)
	}
	if n := strings.Count(string(second), embedded.ErrLocked.Error()); n != 1 {
		t.Errorf("got the error %d times, want once:\n%s", n, second)
	}

	natstest.NoError(t, first.Process.Signal(syscall.SIGTERM))
	if got, want := log.await(t, "the broker stops")["cause"], "terminated signal received"; got != want {
		t.Errorf("cause: got %v, want %v", got, want)
	}
	log.await(t, "the broker has stopped")
	if err := first.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
}

func TestProcessWithWrongSettings(t *testing.T) {
	out, err := command(t, nil, "DELAY_ATTEMPTS=none", "DELAY_LEVELS=1x").CombinedOutput()
	if got, want := exitCodeOf(err), 2; got != want {
		t.Errorf("exit code: got %d, want %d", got, want)
	}
	wantParts(t, string(out), `DELAY_ATTEMPTS="none"`, `DELAY_LEVELS="1x"`)
}

// If a variable of another program names the server, the program does not silently embed one.
func TestMisnamedServer(t *testing.T) {
	for _, name := range []string{"NATS_URI", "NATS_URLS", "NATS_SERVER", "NATS_SERVERS"} {
		embeddedEnv(t)
		t.Setenv(name, "nats://127.0.0.1:1")
		r := start(t)
		line := r.log.await(t, "the environment variable is not a setting; serve --help lists the settings")
		r.stop(t)
		if line["name"] != name || line["nearest"] != "NATS_URL" || line["level"] != "WARN" {
			t.Errorf("serve: got %v, want %s and NATS_URL", line, name)
		}
		t.Setenv("DELAY_EMBEDDED_LISTEN", "127.0.0.1:1")
		_, errs, err := runCommand(t, "", "levels")
		if want := name + " is not a setting and is ignored; did you mean NATS_URL?"; err == nil || !strings.Contains(errs,
			want) {
			t.Errorf("levels: got %v and %q, want %q", err, errs, want)
		}
		t.Setenv(name, "")
	}
}
