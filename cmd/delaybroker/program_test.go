package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// timeout is the maximum wait of a test for an event that should happen immediately.
const timeout = natstest.Timeout

// A logReader receives the JSON log of a program under test, so that a test can wait for a line.
type logReader struct {
	lines chan map[string]any

	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func newLogReader() *logReader { return &logReader{lines: make(chan map[string]any, 1000)} }

// Write gets whole lines: a log handler writes each line with one call, and so does the pipe of a process.
func (l *logReader) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for text := range bytes.Lines(p) {
		var line map[string]any
		if json.Unmarshal(text, &line) == nil {
			l.lines <- line
		}
	}
	return len(p), nil
}

func (l *logReader) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logReader) await(t *testing.T, msg string) map[string]any {
	t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case line := <-l.lines:
			if line["msg"] == msg {
				return line
			}
		case <-deadline:
			t.Fatalf("got no line %q in the log:\n%s", msg, l)
		}
	}
}

// A program is this program, run by a goroutine of the test.
type program struct {
	log    *logReader
	cancel context.CancelFunc
	result chan error
	ready  map[string]any // the line "ready" of its log; set by startReady
}

// start runs the program with the current environment. The test must stop the program or wait for its end.
func start(t *testing.T) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &program{log: newLogReader(), cancel: cancel, result: make(chan error, 1)}
	go func() { r.result <- run(ctx, nil, io.Discard, r.log) }()
	return r
}

// startReady runs the program as start does, and returns when the broker is ready.
func startReady(t *testing.T) *program {
	t.Helper()
	r := start(t)
	r.ready = r.log.await(t, "ready")
	return r
}

// end waits for the end of the program, and returns its error.
func (r *program) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.result:
		return err
	case <-time.After(timeout):
		t.Fatalf("got no end of the program:\n%s", r.log)
		return nil
	}
}

// stop stops the program, which must end without an error.
func (r *program) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := r.end(t); err != nil {
		t.Fatalf("stop: got %v, want nil", err)
	}
}

// embeddedEnv sets the environment for an embedded server on free ports, and for few levels.
func embeddedEnv(t *testing.T) {
	t.Helper()
	natstest.ClearEnv(t)
	t.Setenv("DELAY_EMBEDDED_LISTEN", "127.0.0.1:0")
	t.Setenv("DELAY_EMBEDDED_DIR", natstest.Dir(t))
	t.Setenv("DELAY_HTTP_ADDR", "127.0.0.1:0")
	t.Setenv("DELAY_LEVELS", "1s 5s")
	t.Setenv("DELAY_LOG_FORMAT", "json")
}

// externalEnv sets the environment for the server at url, and for few levels.
func externalEnv(t *testing.T, url string) {
	t.Helper()
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", url)
	t.Setenv("DELAY_HTTP_ADDR", "127.0.0.1:0")
	t.Setenv("DELAY_LEVELS", "1s 5s")
	t.Setenv("DELAY_LOG_FORMAT", "json")
}

// login makes the following commands log in as a user.
func login(t *testing.T, user, password string) {
	t.Helper()
	t.Setenv("NATS_USER", user)
	t.Setenv("NATS_PASSWORD", password)
}

func startServer(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.JetStream, o.StoreDir = "127.0.0.1", true, natstest.Dir(t)
	return natstest.RunWith(t, o).Server()
}

func connect(t *testing.T, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(url)
	natstest.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(10_000)) // a slow machine must not fail the test
	natstest.NoError(t, err)
	return nc, js
}

func subscribe(t *testing.T, nc *nats.Conn, subject string) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	natstest.NoError(t, err)
	natstest.NoError(t, nc.Flush())
	return sub
}

func publish(t *testing.T, js jetstream.JetStream, subject, payload string) {
	t.Helper()
	if _, err := js.Publish(t.Context(), subject, []byte(payload)); err != nil {
		t.Fatal(err)
	}
}

func wantMessage(t *testing.T, sub *nats.Subscription, payload string) *nats.Msg {
	t.Helper()
	m, err := sub.NextMsg(timeout)
	natstest.NoError(t, err)
	if got, want := string(m.Data), payload; got != want {
		t.Errorf("payload: got %q, want %q", got, want)
	}
	return m
}

func wantProbe(t *testing.T, address any, path string, want int) {
	t.Helper()
	res, err := http.Get(fmt.Sprintf("http://%s%s", address, path))
	natstest.NoError(t, err)
	res.Body.Close()
	if got := res.StatusCode; got != want {
		t.Errorf("%s: got %d, want %d", path, got, want)
	}
}

// wantBody checks that the answer contains all parts.
func wantBody(t *testing.T, address any, path string, parts ...string) {
	t.Helper()
	wantParts(t, bodyOf(t, address, path), parts...)
}

// wantParts checks that a text contains all parts.
func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got no %q in\n%s", part, text)
		}
	}
}

// startProcess runs the program as a process, whose log is JSON.
func startProcess(t *testing.T, environ ...string) (*exec.Cmd, *logReader) {
	t.Helper()
	cmd, log := command(t, nil, environ...), newLogReader()
	cmd.Stderr = log
	natstest.NoError(t, cmd.Start())
	return cmd, log
}

// terminate sends SIGTERM to a process, which must then end with exit code 0.
func terminate(t *testing.T, cmd *exec.Cmd, log *logReader) {
	t.Helper()
	natstest.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0:\n%s", err, log)
	}
}

// bodyOf returns the answer of a probe.
func bodyOf(t *testing.T, address any, path string) string {
	t.Helper()
	res, err := http.Get(fmt.Sprintf("http://%s%s", address, path))
	natstest.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	natstest.NoError(t, err)
	return string(body)
}

func freePort(t *testing.T) int {
	t.Helper()
	return int(netip.MustParseAddrPort(natstest.FreeAddress(t)).Port())
}
