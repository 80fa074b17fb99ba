package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/probes"
)

var (
	// errWarnings is returned by doctor when something should be looked at, and has been printed.
	errWarnings = errors.New("doctor has warnings")
	// errCritical is returned by doctor when messages are or will be late, refused or lost, and has been printed.
	errCritical = errors.New("doctor found something critical")
)

func (a *app) doctorCommand() *cobra.Command {
	var skip []string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps messages from being on time, or from being kept",
		Long: `Check the connection, rights, JetStream and its limits, streams, clocks, durability and memory, with the
settings and the users of the broker: run it where the broker runs, or as somebody else with --skip rights. It changes
nothing.

exit codes: 0 all is well, 1 warnings, 2 something is critical, or wrong words or settings`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.doctor(ctx, skip)
		},
	}
	c.Flags().StringSliceVar(&skip, "skip", nil,
		"leave out checks, by the first column: what is known and accepted, such as durability")
	completes(c, "skip", inspect.CheckNames()...)
	return c
}

func (a *app) doctor(ctx context.Context, skip []string) error {
	for _, name := range skip {
		if known := inspect.CheckNames(); !slices.Contains(known, name) {
			return fmt.Errorf("%w: --skip %q: want some of %s", errUsage, name, strings.Join(known, ", "))
		}
	}
	f, err := a.gather(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	skipped := func(one inspect.Finding) bool { return slices.Contains(skip, one.Check) }
	findings := slices.DeleteFunc(f.Findings(), skipped)
	worst := inspect.Fine
	for _, one := range findings {
		worst = max(worst, one.State)
	}
	if err := a.showFindings(worst, findings); err != nil {
		return err
	}
	switch worst {
	case inspect.Critical:
		return logged{errCritical}
	case inspect.Warn:
		return logged{errWarnings}
	}
	return nil
}

func (a *app) showFindings(worst inspect.Severity, findings []inspect.Finding) error {
	if a.json {
		return a.printJSON(struct {
			State    inspect.Severity  `json:"state"`
			Findings []inspect.Finding `json:"findings"`
		}{worst, findings})
	}
	t := a.sheet(
		column{name: "check", least: 8, wrap: true}, column{name: "state"},
		column{name: "detail", least: 10, wrap: true}, column{name: "what to do", least: 10, wrap: true},
	)
	for _, one := range findings {
		t.add(one.Check, one.State.String(), one.Detail, one.Do)
	}
	t.print()
	return nil
}

// gather finds out what doctor judges. That there is no server is a finding like any other.
func (a *app) gather(ctx context.Context) (inspect.Facts, error) {
	cfg, err := readConfig()
	if err != nil {
		return inspect.Facts{}, err
	}
	build := readBuild()
	host := inspect.Host{
		Version: build.name(), Client: orUnknown(build.natsGo), Memory: readMemory(), Sync: cfg.embed.Durability(),
		Probe: cfg.probe(ctx), Exposed: cfg.embed.Exposed(), Login: cfg.reach.login,
	}
	i, err := a.open(ctx, cfg)
	if err != nil {
		return inspect.Facts{Config: cfg.broker, Host: host, ConnectErr: err}, nil
	}
	defer i.Close()
	return i.Gather(ctx, host, cfg.linksApart()), nil
}

const (
	// probeLooks is how often a broker that is not ready is asked, and probePause how long after the last time: what is
	// over in a moment, such as a start, is no finding.
	probeLooks = 5
	probePause = 500 * time.Millisecond
)

// probe asks the broker on this host, if there should be one that can be asked.
func (c config) probe(ctx context.Context) inspect.Probe {
	if _, port, err := net.SplitHostPort(c.httpAddr); err != nil || port == "0" {
		return inspect.Probe{}
	}
	broker := "http://" + dialable(c.httpAddr)
	p := inspect.Probe{URL: broker + "/readyz"}
	if alive, err := probes.Ask(ctx, broker+"/healthz"); err == nil {
		p.Alive = alive.Checks
	}
	for look := 1; ; look++ {
		ready, err := probes.Ask(ctx, p.URL)
		p.Checks, p.Err = ready.Checks, err
		if err != nil || probes.Fine(p.Checks) || look == probeLooks {
			return p
		}
		select {
		case <-ctx.Done():
			return p
		case <-time.After(probePause):
		}
	}
}

// linksApart are the links with a user of their own.
func (c config) linksApart() []inspect.Link {
	var all []inspect.Link
	for _, variable := range linkVariables {
		if access, apart := c.apart[variable.link]; apart && variable.link != "page" { // it says itself what it lacks
			options := append([]nats.Option{nats.Name("delaybroker doctor")}, access.options...)
			connect := func() (*nats.Conn, error) { return nats.Connect(access.url, options...) }
			all = append(all, inspect.Link{Name: variable.link, From: variable.name, Connect: connect})
		}
	}
	return all
}
