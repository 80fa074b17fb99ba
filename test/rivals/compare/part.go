package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/test/rivals/bench"
)

// binaryVariable is the environment variable with the path of the command delaybroker.
const binaryVariable = "COMPARE_BROKER"

// benchParts makes the commands that start this program again, as the processes of a run.
type benchParts struct {
	executable string
	prefix     string
	binary     string // of the broker
	url        string // of the run's own server; empty for the configured one
}

// command returns the command of a part. The process gets the environment, except the settings that b withholds.
func (b benchParts) command(part bench.Part) *exec.Cmd {
	cmd := exec.Command(b.executable, "part", string(part))
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !b.withholds(name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "DELAY_PREFIX="+b.prefix, "DELAY_HTTP_ADDR=off", "DELAY_LOG_FORMAT=json",
		"DELAY_INSTANCE=compare", // by its name, a broker that starts after a kill is known as a new run of the killed one
		binaryVariable+"="+b.binary)
	if b.url != "" {
		cmd.Env = append(cmd.Env, "NATS_URL="+b.url)
	}
	return cmd
}

// withholds reports whether the processes of the run do not get a setting. DELAY_TARGETS, DELAY_RATE and
// DELAY_PROVISION could restrict the run. DELAY_LOG_* could hide the line "ready" from readyLog. Two brokers cannot
// share the other settings. If the run has its own server, the processes do not get the settings of another server.
func (b benchParts) withholds(name string) bool {
	switch name {
	case "DELAY_PREFIX", "DELAY_LOG_FORMAT", "DELAY_LOG_LEVEL", "DELAY_INSTANCE", "DELAY_TARGETS",
		"DELAY_RATE", "DELAY_PROVISION":
		return true
	case "DELAY_EMBEDDED_SYNC", "DELAY_JS_DOMAIN", "DELAY_READ_CONTEXT", "DELAY_WRITE_CONTEXT", "DELAY_DELIVER_CONTEXT":
		return b.url != ""
	}
	return strings.HasPrefix(name, "DELAY_HTTP_") || strings.HasPrefix(name, "DELAY_EMBEDDED_") ||
		b.url != "" && strings.HasPrefix(name, "NATS_")
}

// versionOf returns the version of a command delaybroker.
func versionOf(ctx context.Context, binary string) (string, error) {
	out, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", binary, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "delaybroker ")), nil
}

// partCommand returns the hidden command that compare starts for each process of a run. The process ends when its stdin
// is closed, so it ends even if compare is killed.
func (a *app) partCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "part PART",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// A terminal sends SIGINT to this process too, but compare must clean up before this process ends.
			signal.Ignore(os.Interrupt)
			return a.part(cmd.Context(), bench.Part(args[0]), cmd.InOrStdin())
		},
	}
}

func (a *app) part(ctx context.Context, part bench.Part, stdin io.Reader) error {
	switch part {
	case bench.PartServer:
		return a.benchServer(stdin)
	case bench.PartBroker:
		return a.broker(stdin)
	}
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	return bench.RunPart(ctx, part, a.dialer(ctx, cfg.Access, cfg.Broker), stdin, a.Out)
}

// broker runs the command delaybroker until stdin is closed.
func (a *app) broker(stdin io.Reader) error {
	cmd := exec.Command(os.Getenv(binaryVariable))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's SIGINT must not reach the broker
	log := &readyLog{stderr: a.Err, events: json.NewEncoder(a.Out)}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return err
	}
	log.started(cmd.Process.Pid)
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, stdin)
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only if the broker has exited, which Wait reports
	}()
	return cmd.Wait()
}

// benchServer runs a NATS server with the fsync policy of the settings, until stdin is closed. It removes the server's
// directory at the end.
func (a *app) benchServer(stdin io.Reader) (err error) {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	if cfg.Embedded == nil {
		return errors.New("bug: compare starts a server although the settings name one")
	}
	dir, err := os.MkdirTemp("", "delaybroker-bench-")
	if err != nil {
		return fmt.Errorf("make a directory for the server: %w", err)
	}
	defer os.RemoveAll(dir)
	config := embedded.Config{Host: "127.0.0.1", Dir: dir, Sync: cfg.Embedded.Sync, SyncAlways: cfg.Embedded.SyncAlways}
	server, err := embedded.Start(config, settings.Log{Level: slog.LevelError, Format: "text"}.Logger(a.Err))
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := json.NewEncoder(a.Out).Encode(bench.PartOutput{Ready: true, URL: server.URL()}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stdin)
	return err
}

// A readyLog parses a broker's log. It writes an event when the broker is ready, and copies warnings, errors and lines
// that are not JSON to stderr.
type readyLog struct {
	stderr io.Writer
	events *json.Encoder

	mu   sync.Mutex // guards the fields below
	pid  int
	rest []byte // an incomplete line
}

// started sets the broker's process id, for the event.
func (l *readyLog) started(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pid = pid
}

func (l *readyLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexByte(l.rest, '\n')
		if end < 0 {
			return len(p), nil
		}
		text := l.rest[:end+1]
		l.rest = l.rest[end+1:]
		var line struct {
			Level slog.Level
			Msg   string
		}
		if json.Unmarshal(text, &line) != nil || line.Level >= slog.LevelWarn {
			_, _ = l.stderr.Write(text) // no other place to report the error
		}
		if line.Msg == "ready" {
			if err := l.events.Encode(bench.PartOutput{Ready: true, PID: l.pid}); err != nil {
				return 0, err
			}
		}
	}
}

// host returns the server to measure, and the commands of the other processes of the run. If the settings name no
// server, host starts a temporary server, which the function end stops. If binary is empty, host builds the command
// delaybroker, which end removes.
func (a *app) host(
	ctx context.Context, plan bench.Plan, binary string,
) (host bench.Host, end func() error, err error) {
	cfg, err := settings.Read()
	if err != nil {
		return host, nil, err
	}
	if plan.Scenario.Named() && !cfg.Broker.Timers {
		return host, nil, fmt.Errorf("%w: %s needs named timers: remove DELAY_TIMERS=off", errUsage, plan.Scenario)
	}
	executable, err := os.Executable()
	if err != nil {
		return host, nil, fmt.Errorf("find this program: %w", err)
	}
	parts := benchParts{executable: executable, prefix: bench.NewPrefix(), binary: binary}
	access, end := cfg.Access, func() error { return nil }
	if binary == "" {
		dir, err := os.MkdirTemp("", "delaybroker-compare-")
		if err != nil {
			return host, nil, fmt.Errorf("make a directory for the broker: %w", err)
		}
		end = func() error { return os.RemoveAll(dir) }
		parts.binary = filepath.Join(dir, "delaybroker")
		build := exec.CommandContext(ctx, "go", "build", "-o", parts.binary, "delaybroker/cmd/delaybroker")
		if out, err := build.CombinedOutput(); err != nil {
			return host, nil, errors.Join(fmt.Errorf("build the broker: %w: %s", err, out), end())
		}
	}
	if host.Version, err = versionOf(ctx, parts.binary); err != nil {
		return host, nil, errors.Join(err, end())
	}
	if cfg.Embedded != nil {
		host.Server, err = bench.StartChild(ctx, bench.PartServer, parts.command(bench.PartServer), struct{}{})
		if err != nil {
			return host, nil, errors.Join(err, end())
		}
		removeBinary := end
		end = func() error { return errors.Join(host.Server.Stop(), removeBinary()) }
		parts.url, access = host.Server.URL, links.Access{URL: host.Server.URL}
	}
	host.Command, host.Prefix, host.Replicas = parts.command, parts.prefix, cfg.Broker.Copies
	host.Dialer = a.dialer(ctx, access, cfg.Broker)
	return host, end, nil
}

func (a *app) dialer(ctx context.Context, access links.Access, cfg broker.Config) bench.Dialer {
	return bench.Dialer{
		Connect: func() (*nats.Conn, error) {
			return links.Connect(ctx, access, "compare", func(text string) { fmt.Fprintln(a.Err, text) })
		},
		APIPrefix: cmp.Or(cfg.APIPrefix, config.APIPrefix(cfg.JSDomain)),
	}
}
