package main

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/publisher"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/test/natstest"
)

// connectSettings connects as the commands under test do.
func connectSettings(t *testing.T) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	c, err := settings.ReadClient()
	natstest.NoError(t, err)
	return connect(t, c.Access.URL)
}

// runSub runs sub until the test ends. nextLine waits for the next line of the output. result receives the error of the
// command.
func runSub(t *testing.T, args ...string) (nextLine func() string, result chan error) {
	t.Helper()
	r, w := io.Pipe()
	texts := make(chan string, 100)
	go func() {
		buffer := make([]byte, 4096) // each line is one write
		for {
			n, err := r.Read(buffer)
			if err != nil {
				return
			}
			texts <- string(buffer[:n])
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	result = make(chan error, 1)
	go func() {
		result <- run(ctx, append([]string{"sub"}, args...), w, io.Discard)
		w.Close()
	}()
	t.Cleanup(cancel)
	return func() string {
		select {
		case line := <-texts:
			return line
		case <-time.After(timeout):
			t.Fatal("got no line from sub")
			return ""
		}
	}, result
}

func TestSub(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	startBroker(t)
	next, result := runSub(t, "orders.>", "--count", "2")
	head := []string{"TIME", time.Now().Format("MST"), "LATE", "DUE", "SUBJECT", "ID", "BODY"}
	if got, want := strings.Fields(next()), head; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	nc, _ := connectSettings(t)
	natstest.NoError(t, nc.Publish("orders.now", []byte("\x1b[31mred")))
	line := next()
	if !strings.Contains(line, "·[31mred") || strings.ContainsRune(line, '\x1b') || !strings.Contains(line, " - ") {
		t.Errorf("got %q, want no due time, and the body without its escape code", line)
	}
	out := mustRunCommand(t, "", "pub", "orders.expire", "{}", "--in", "1s", "--json")
	sent := decodeLines[publisher.Published](t, out)
	line = next()
	for _, want := range []string{"orders.expire", sent[0].ID, sent[0].Due.Local().Format(clockLayout), " ms", "{}"} {
		if !strings.Contains(line, want) {
			t.Errorf("got %q, want %q in it", line, want)
		}
	}
	if err := <-result; err != nil {
		t.Errorf("after the count: got %v, want nil", err)
	}
}

func TestSubJSON(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	startBroker(t)
	next, result := runSub(t, "orders.>", "--count", "2", "--json")
	nc, js := connectSettings(t)
	// JSON has no header line that shows when the subscription exists. A request without a subscriber fails immediately.
	for err := nats.ErrNoResponders; errors.Is(err, nats.ErrNoResponders); {
		_, err = nc.Request("orders.now", []byte{0xff, 0}, 100*time.Millisecond)
	}
	type line struct {
		Subject    string
		ID         string
		Due        time.Time
		Headers    map[string][]string
		Time       time.Time
		LateMS     *float64 `json:"late_ms"`
		Body       *string
		BodyBase64 string `json:"body_base64"`
	}
	plain := decodeLines[line](t, next())[0]
	encoded := base64.StdEncoding.EncodeToString([]byte{0xff, 0})
	if plain.LateMS != nil || plain.ID != "" || plain.Body != nil || plain.BodyBase64 != encoded {
		t.Errorf("got %+v, want no delay, and the body in base64", plain)
	}
	publish(t, js, "delay.1s.orders.expire", "text")
	m := decodeLines[line](t, next())[0]
	if m.Subject != "orders.expire" || !strings.HasPrefix(m.ID, "DELAY_1s-1-") ||
		m.Body == nil || *m.Body != "text" || m.LateMS == nil {
		t.Fatalf("got %+v, want the delayed message", m)
	}
	if got, want := *m.LateMS, terminal.Milliseconds(m.Time.Sub(m.Due)); got < 0 || got != want {
		t.Errorf("late: got %v ms, want %v", got, want)
	}
	if got := m.Headers[message.HeaderID]; len(got) != 1 || got[0] != m.ID {
		t.Errorf("got headers %v, want those of the delivery", m.Headers)
	}
	if err := <-result; err != nil {
		t.Errorf("after the count: got %v, want nil", err)
	}
}

func TestSubShowsHeaders(t *testing.T) {
	startBroker(t)
	next, result := runSub(t, "orders.>", "--count", "1", "--headers")
	next()
	nc, _ := connectSettings(t)
	m := nats.NewMsg("orders.now")
	m.Header = nats.Header{"X-Kind": {"a\x1b[31m", "b"}}
	natstest.NoError(t, nc.PublishMsg(m))
	wantParts(t, next(), "orders.now")
	if got, want := next()+next(), "    X-Kind: a·[31m\n    X-Kind: b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := <-result; err != nil {
		t.Errorf("after the count: got %v, want nil", err)
	}
}

// startSub runs sub until the caller cancels it, and returns when sub has subscribed. The channel ended receives the
// error of sub.
func startSub(t *testing.T, stderr io.Writer) (cancel context.CancelFunc, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, w := io.Pipe()
	result := make(chan error, 1)
	go func() { result <- run(ctx, []string{"sub", "x"}, w, stderr) }()
	if _, err := r.Read(make([]byte, 4096)); err != nil { // the heading
		t.Fatal(err)
	}
	return cancel, result
}

// The command tells the user when the connection is lost, and when it is back.
func TestSubReportsDisconnect(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	var stderr syncBuffer
	cancel, ended := startSub(t, &stderr)
	clients, err := o.server.Connz(&server.ConnzOptions{})
	natstest.NoError(t, err)
	for _, c := range clients.Conns {
		if strings.HasSuffix(c.Name, " client") {
			natstest.NoError(t, o.server.DisconnectClientByID(c.Cid))
		}
	}
	eventually(t, "report of the disconnect", func() bool {
		return strings.Contains(stderr.String(), "disconnected from NATS")
	})
	eventually(t, "report of the reconnect", func() bool {
		return strings.Contains(stderr.String(), "reconnected to NATS at nats://127.0.0.1")
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// A syncBuffer receives the output of a command while a test reads it.
type syncBuffer struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestSubRefuses(t *testing.T) {
	startBroker(t)
	wantCommandError(t, 2, []string{"sub SUBJECT"}, "sub")
	wantCommandError(t, 2, []string{"--count"}, "sub", "x", "--count", "-1")
	t.Setenv("NATS_URL", "nats://127.0.0.1:1") // wrong arguments are reported before it connects
	wantCommandError(t, 2, []string{"subscribe"}, "sub", "a b")
	wantCommandError(t, 2, []string{"subscribe"}, "sub", "a..b")
}

// An interrupt of sub is not an error.
func TestSubInterrupted(t *testing.T) {
	startBroker(t)
	cancel, ended := startSub(t, io.Discard)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}
