package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// asProcess is the environment variable that makes the test's program behave as compare.
const asProcess = "COMPARE_TEST_PROCESS"

var (
	binaryDir string // of the command delaybroker; TestMain removes it

	// brokerBinary builds the command delaybroker once, and returns its path.
	brokerBinary = sync.OnceValues(func() (path string, err error) {
		if binaryDir, err = os.MkdirTemp("", "compare-test-"); err != nil {
			return "", err
		}
		path = filepath.Join(binaryDir, "delaybroker")
		return path, natstest.Build(path, "delaybroker/cmd/delaybroker")
	})
)

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
		os.Exit(0)
	}
	code := m.Run()
	if binaryDir != "" {
		_ = os.RemoveAll(binaryDir) // the directory is temporary
	}
	os.Exit(code)
}

// command returns a command that runs compare in its own process.
func command(t *testing.T, args []string, environ ...string) *exec.Cmd {
	t.Helper()
	binary, err := brokerBinary()
	natstest.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "--broker", binary)...)
	cmd.Env = append(environ, asProcess+"=1")
	return cmd
}

func exitCodeOf(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("decode %q: %v", text, err)
	}
	return v
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	natstest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got no %q in\n%s", part, text)
		}
	}
}

// startServer starts a server with a stream that does not belong to a run.
func startServer(t *testing.T) (*server.Server, jetstream.JetStream) {
	t.Helper()
	s := natstest.RunWith(t, server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: natstest.Dir(t),
	}).Server()
	nc, err := nats.Connect(s.ClientURL())
	natstest.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	natstest.NoError(t, err)
	other := jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}}
	if _, err := js.CreateStream(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	return s, js
}
