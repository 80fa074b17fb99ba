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
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/bench"
	"delaybroker/broker/config"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/cmd/delaybroker/settings"
)

// benchParts makes the commands that start this program again, as the processes of a run.
type benchParts struct {
	executable string
	prefix     string
	url        string // of the run's own server; empty for the configured one
	probes     string // address of the broker's probes
}

// command returns the command of a part. The process gets the environment, except the settings that b withholds.
func (b benchParts) command(part bench.Part) *exec.Cmd {
	cmd := exec.Command(b.executable, "bench-part", string(part))
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !b.withholds(name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "DELAY_PREFIX="+b.prefix, "DELAY_HTTP_ADDR="+b.probes, "DELAY_LOG_FORMAT=json")
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

// freeAddress returns an unused address. Its port is below the ports that systems use for outgoing connections.
func freeAddress() (string, error) {
	const low, high, tries = 20_000, 30_000, 100
	var err error
	for range tries {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", low+rand.IntN(high-low))); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", fmt.Errorf("find an address for the broker's probes: %w", err)
}

// benchPartCommand returns the hidden command that bench starts for each process of a run. The process ends when its
// stdin is closed, so it ends even if bench is killed.
func (a *app) benchPartCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "bench-part PART",
		Short:  "Run a process of bench",
		Hidden: true,
		Args:   argumentsBetween(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// A terminal sends SIGINT to this process too, but bench must clean up before this process ends.
			signal.Ignore(os.Interrupt)
			return a.benchPart(cmd.Context(), bench.Part(args[0]), cmd.InOrStdin())
		},
	}
}

func (a *app) benchPart(ctx context.Context, part bench.Part, stdin io.Reader) error {
	switch part {
	case bench.PartServer:
		return a.benchServer(stdin)
	case bench.PartBroker:
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { // the goroutine ends with the process
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
		return serve(ctx, &readyLog{stderr: a.Err, events: json.NewEncoder(a.Out)})
	}
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	return bench.RunPart(ctx, part, a.benchDialer(ctx, cfg.Access, cfg.Broker), stdin, a.Out)
}

// benchServer runs a NATS server with the fsync policy of the settings, until stdin is closed. It removes the server's
// directory at the end.
func (a *app) benchServer(stdin io.Reader) (err error) {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	if cfg.Embedded == nil {
		return errors.New("bug: bench starts a server although the settings name one")
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
}

// Write gets whole lines: a log handler writes each line with one call.
func (l *readyLog) Write(p []byte) (int, error) {
	for text := range bytes.Lines(p) {
		var line struct {
			Level slog.Level
			Msg   string
		}
		if json.Unmarshal(text, &line) != nil || line.Level >= slog.LevelWarn {
			_, _ = l.stderr.Write(text) // no other place to report the error
		}
		if line.Msg == "ready" {
			if err := l.events.Encode(bench.PartOutput{Ready: true}); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// benchHost returns the server to measure, and the commands of the other processes of the run. If the settings name no
// server, benchHost starts a temporary server, which the function end stops.
func (a *app) benchHost(ctx context.Context, plan bench.Plan) (host bench.Host, end func() error, err error) {
	cfg, err := settings.Read()
	if err != nil {
		return host, nil, err
	}
	if plan.Scenario.Named() && !cfg.Broker.Timers {
		return host, nil, fmt.Errorf("%w: bench %s needs named timers: remove DELAY_TIMERS=off", errUsage, plan.Scenario)
	}
	executable, err := os.Executable()
	if err != nil {
		return host, nil, fmt.Errorf("find this program: %w", err)
	}
	parts := benchParts{executable: executable, prefix: bench.NewPrefix()}
	if parts.probes, err = freeAddress(); err != nil {
		return host, nil, err
	}
	access, end := cfg.Access, func() error { return nil }
	if cfg.Embedded != nil {
		host.Server, err = bench.StartChild(ctx, bench.PartServer, parts.command(bench.PartServer), struct{}{})
		if err != nil {
			return host, nil, err
		}
		end = host.Server.Stop
		parts.url, access = host.Server.URL, links.Access{URL: host.Server.URL}
	}
	host.Command, host.Prefix, host.Replicas = parts.command, parts.prefix, cfg.Broker.Copies
	host.Dialer = a.benchDialer(ctx, access, cfg.Broker)
	return host, end, nil
}

func (a *app) benchDialer(ctx context.Context, access links.Access, cfg broker.Config) bench.Dialer {
	return bench.Dialer{
		Connect:   func() (*nats.Conn, error) { return a.connect(ctx, access) },
		APIPrefix: cmp.Or(cfg.APIPrefix, config.APIPrefix(cfg.JSDomain)),
	}
}
