package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/bench"
	"delaybroker/broker/config"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/cmd/delaybroker/settings"
)

// benchHost returns the server to measure, which is the configured one or a temporary one, and the commands of the
// other processes of the run. end stops a temporary server.
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
	if parts.http, err = freeAddress(); err != nil {
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
