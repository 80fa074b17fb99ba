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
	// errWarnings is returned by doctor when there are warnings, which were already printed.
	errWarnings = errors.New("doctor has warnings")
	// errCritical is returned by doctor when messages are or will be late, refused or lost. The findings were already
	// printed.
	errCritical = errors.New("doctor has a critical finding")
)

func (a *app) doctorCommand() *cobra.Command {
	var skip []string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find causes of late or lost messages",
		Long: `Check the connection, permissions, JetStream and its limits, streams, clocks, durability and memory, and change
nothing. Run the command on the broker's host, with the broker's settings and users: another user cannot check the
broker's permissions.

exit codes: 0 no problem, 1 warnings, 2 a critical finding, or bad arguments or settings`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := withInterrupt(cmd.Context())
			defer stop()
			return a.doctor(ctx, skip)
		},
	}
	addListFlag(c, &skip, "skip", doctor.CheckNames(),
		"checks to leave out, named as in the first column")
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
	state := doctor.Fine
	for _, f := range findings {
		state = max(state, f.Severity)
	}
	if !a.AsJSON(struct {
		State    doctor.Severity  `json:"state"`
		Findings []doctor.Finding `json:"findings"`
	}{state, findings}) {
		a.printFindings(findings)
	}
	switch state {
	case doctor.Critical:
		return reportedError{errCritical}
	case doctor.Warn:
		return reportedError{errWarnings}
	}
	return nil
}

// gather collects the facts for doctor. An unreachable server is a finding too, and not an error.
func (a *app) gather(ctx context.Context) (doctor.Facts, error) {
	cfg, err := settings.Read()
	if err != nil {
		return doctor.Facts{}, err
	}
	build := readBuild()
	host := doctor.Host{
		Version: build.name(), Client: orUnknown(build.natsGo), Memory: settings.ReadMemory(),
		Sync: cfg.Embedded.Durability(), ExposedAddress: cfg.Embedded.ExposedAddress(), LoginSetting: cfg.Access.LoginAdvice,
		Probe: web.ProbeBroker(ctx, cfg.ProbeURL()),
	}
	for _, u := range settings.Unknown() {
		host.UnknownSettings = append(host.UnknownSettings, u.String())
	}
	i, err := a.open(ctx, cfg)
	if err != nil {
		return doctor.Facts{Config: cfg.Broker, Host: host, ConnectErr: err}, nil
	}
	defer i.Close()
	return doctor.Gather(ctx, i, host, cfg.LinksWithContext()), nil
}
