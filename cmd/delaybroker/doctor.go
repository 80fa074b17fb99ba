package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"delaybroker/broker/doctor"
	"delaybroker/broker/web"
	"delaybroker/cmd/delaybroker/settings"
)

var (
	// errWarnings is returned by doctor when there are warnings, which have been printed.
	errWarnings = errors.New("doctor has warnings")
	// errCritical is returned by doctor when messages are or will be late, refused or lost. The findings have been
	// printed.
	errCritical = errors.New("doctor found something critical")
)

func (a *app) doctorCommand() *cobra.Command {
	var skip []string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps messages from being on time, or from being kept",
		Long: `Check the connection, rights, JetStream and its limits, streams, clocks, durability and memory, with the
settings and the users of the broker: run it where the broker runs. As another user it judges everything but the
rights of the broker. It changes nothing.

exit codes: 0 all is well, 1 warnings, 2 something is critical, or wrong words or settings`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.doctor(ctx, skip)
		},
	}
	wordsFlag(c, &skip, "skip", doctor.CheckNames(),
		"leave out checks, by the first column: what is known and accepted, such as durability")
	return c
}

func (a *app) doctor(ctx context.Context, skip []string) error {
	f, err := a.gather(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	findings := f.Findings(skip...)
	worst := doctor.Fine
	for _, one := range findings {
		worst = max(worst, one.State)
	}
	if !a.AsJSON(struct {
		State    doctor.Severity  `json:"state"`
		Findings []doctor.Finding `json:"findings"`
	}{worst, findings}) {
		a.printFindings(findings)
	}
	switch worst {
	case doctor.Critical:
		return logged{errCritical}
	case doctor.Warn:
		return logged{errWarnings}
	}
	return nil
}

// gather collects the facts for doctor. An unreachable server is a finding too, and no error.
func (a *app) gather(ctx context.Context) (doctor.Facts, error) {
	cfg, err := settings.Read()
	if err != nil {
		return doctor.Facts{}, err
	}
	build := readBuild()
	host := doctor.Host{
		Version: build.name(), Client: orUnknown(build.natsGo), Memory: settings.ReadMemory(),
		Sync: cfg.Embedded.Durability(), Exposed: cfg.Embedded.Exposed(), Login: cfg.Access.Login,
		Probe: web.Look(ctx, cfg.Probes()),
	}
	for _, u := range settings.Unknown() {
		host.Unknown = append(host.Unknown, u.String())
	}
	i, err := a.open(ctx, cfg)
	if err != nil {
		return doctor.Facts{Config: cfg.Broker, Host: host, ConnectErr: err}, nil
	}
	defer i.Close()
	return doctor.Gather(ctx, i, host, cfg.LinksApart()), nil
}
