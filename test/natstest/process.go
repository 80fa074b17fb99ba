package natstest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buildDir is the directory of the command that buildBroker has built, or empty. RemoveBroker removes it.
var buildDir string

// buildBroker builds the command once, and returns the path. If DELAYBROKER_BINARY has the path of another command,
// buildBroker returns that path.
var buildBroker = sync.OnceValues(func() (string, error) {
	if other := os.Getenv("DELAYBROKER_BINARY"); other != "" {
		return other, nil
	}
	var err error
	if buildDir, err = os.MkdirTemp("", "delaybroker"); err != nil {
		return "", err
	}
	binary := filepath.Join(buildDir, "delaybroker")
	return binary, Build(binary, "delaybroker/cmd/delaybroker")
})

// Build builds a command. Unlike "go build", "go run" keeps a linked command in Go's cache, so the tests of a dozen
// packages link it once.
func Build(binary, pkg string) error {
	if out, err := exec.Command("go", "run", "-exec", "cp", pkg, binary).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return nil
}

// RemoveBroker removes the command that StartBroker built. TestMain calls it at the end.
func RemoveBroker() {
	if buildDir != "" {
		_ = os.RemoveAll(buildDir) // ignored: the directory is temporary
	}
}

// Process is a broker in its own process, which ends at the latest when the test ends.
type Process struct {
	*os.Process
	URL string // the address of the server that the broker uses

	t     testing.TB
	ready chan struct{} // closed when the broker logs that it is ready
	done  chan struct{} // closed when the process has ended
	err   error         // the result of Wait; valid when done is closed
}

// StartBroker runs the command with these settings, and waits until the broker is ready. With -short, it skips the
// test.
func StartBroker(t testing.TB, env ...string) *Process {
	t.Helper()
	SkipShort(t)
	binary, err := buildBroker()
	if err != nil {
		t.Fatalf("build the broker: %v", err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), append([]string{"DELAY_HTTP_ADDR=off", "DELAY_LOG_FORMAT=json"}, env...)...)
	stderr, err := cmd.StderrPipe()
	NoError(t, err)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the broker: %v", err)
	}
	p := &Process{Process: cmd.Process, t: t, ready: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.listen(stderr)
		p.err = cmd.Wait()
	}()
	t.Cleanup(p.Crash)
	select {
	case <-p.ready:
	case <-p.done:
		t.Fatalf("the broker ended before it was ready: %v", p.err)
	case <-time.After(time.Minute):
		t.Fatal("the broker is not ready after a minute")
	}
	return p
}

// RunCommand runs the command until it ends. Its environment has only these settings.
func RunCommand(t testing.TB, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	binary, err := buildBroker()
	if err != nil {
		t.Fatalf("build the broker: %v", err)
	}
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("run %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// listen reads the broker's log. It prints errors, and closes p.ready when the broker is ready.
func (p *Process) listen(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var said struct{ Level, Msg, Server string }
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil || said.Level == "ERROR" { // a crash is not JSON
			fmt.Fprintln(p.t.Output(), lines.Text())
		}
		if said.Msg == "ready" {
			p.URL = said.Server
			close(p.ready)
		}
	}
}

// Crash kills the process, as kill -9 does.
func (p *Process) Crash() {
	if err := p.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill: %v", err)
	}
	<-p.done
}

// Terminate sends SIGTERM, and fails the test unless the broker stops cleanly.
func (p *Process) Terminate() {
	p.t.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("signal: %v", err)
	}
	select {
	case <-p.done:
		if p.err != nil {
			p.t.Errorf("after SIGTERM the broker ended with %v, want exit code 0", p.err)
		}
	case <-time.After(time.Minute):
		p.t.Error("the broker did not stop within a minute of SIGTERM")
		p.Crash()
	}
}
