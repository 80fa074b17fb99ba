package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"delaybroker/broker"
	"delaybroker/broker/streams"
	"delaybroker/cmd/delaybroker/settings"
)

// asProcess makes the test binary run the program, for tests that need a process.
const asProcess = "TEST_DELAYBROKER_PROCESS"

// asTest makes the test binary run one test in its own process.
const asTest = "TEST_DELAYBROKER_TEST"

// TestMain runs eight times as many tests in parallel as go test does by default, because parallel tests mostly wait.
// The flag -parallel overrides that.
func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
	}
	if err := flag.Set("test.parallel", strconv.Itoa(8*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// inOwnProcess runs the calling test in its own process, in parallel to other tests, and returns true when that process
// has ended. In that process it returns false. There the test may change the environment, from which the program reads
// its settings.
func inOwnProcess(t *testing.T) (done bool) {
	t.Helper()
	if os.Getenv(asTest) != "" {
		return false
	}
	t.Parallel()
	words := strings.Split(t.Name(), "/")
	for i, word := range words {
		words[i] = "^" + regexp.QuoteMeta(word) + "$"
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+strings.Join(words, "/"))
	cmd.Env = append(os.Environ(), asTest+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil && strings.Contains(string(out), "--- SKIP: "+t.Name()+" ") {
		t.Skipf("NOT RUN: skipped in its own process\n%s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("in its own process: %v\n%s", err, out)
	}
	return true
}

// command returns the program as a process, with its own environment.
func command(t *testing.T, args []string, environ ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(environ, asProcess+"=1")
	return cmd
}

func TestCommandLine(t *testing.T) {
	for _, test := range []struct {
		args           string
		code           int
		stdout, stderr string // required parts of the output
	}{
		{"--help", 0, "exit codes", ""},
		{"-h", 0, "Usage:", ""},
		{"help", 0, "Usage:", ""},
		{"serve --help", 0, "DELAY_HTTP_ADDR", ""},
		{"serve -h", 0, "NATS_URL", ""},
		{"version", 0, "nats-server v2.", ""},
		{"sevre", 2, "", `delaybroker: unknown command "sevre" (serve?)`},
		{"frobnicate", 2, "", "see delaybroker --help"},
		{"version --loud", 2, "", "unknown flag"},
		{"completion bash", 0, "__start_delaybroker", ""},
		{"completion zsh", 0, "#compdef delaybroker", ""},
		{"completion fish", 0, "complete -c delaybroker", ""},
		{"completion powershell", 0, "Register-ArgumentCompleter", ""},
		{"serve now", 2, "", "no arguments"},
		{"version now", 2, "", "no arguments"},
	} {
		t.Run(test.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			cmd := command(t, strings.Fields(test.args))
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if got, want := cmd.ProcessState.ExitCode(), test.code; got != want {
				t.Errorf("exit code: got %d, want %d\n%s", got, want, &stderr)
			}
			for _, out := range []struct {
				name, got, want string
			}{{"stdout", stdout.String(), test.stdout}, {"stderr", stderr.String(), test.stderr}} {
				if !strings.Contains(out.got, out.want) || out.want == "" && out.got != "" {
					t.Errorf("%s: got %q, want %q in it", out.name, out.got, out.want)
				}
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("disk on fire"), 1},
		{broker.ErrGrace, 1},
		{context.DeadlineExceeded, 1},
		{errUsage, 2},
		{settings.ErrConfig, 2},
		{broker.ErrConfig, 2},
		{broker.ErrDrift, 2},
		{streams.ErrMissingStreams, 2},
		{streams.ErrForeignStream, 2},
		{reportedError{errors.Join(nil, fmt.Errorf("prepare: %w", streams.ErrMissingStreams))}, 2},
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("exit code of %v: got %d, want %d", test.err, got, test.want)
		}
	}
}

// exitCodeOf returns the exit code of a process whose Run or Wait returned err. It is -1 if the process did not run or
// was killed.
func exitCodeOf(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}
