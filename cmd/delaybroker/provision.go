package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

// provisionTimeout is the timeout of the command: it makes some forty streams, each with an election on a cluster.
const provisionTimeout = 2 * time.Minute

func (a *app) provisionCommand() *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "provision",
		Short: "Create the missing streams, and report differences",
		Long: `Create the missing streams, and change existing ones to the settings: their subjects, the bounds of
DELAY_MAX_PENDING and DELAY_MAX_PENDING_BYTES, the duration and size of DELAY_JOURNAL, and the metadata of seals if it
is missing. The command reports all other differences, and never removes a stream. With DELAY_PROVISION=create, serve
makes the same changes at its start. Use the command if a job has the permission to create streams, and the broker does
not.

Set the brokers' environment variables for the command too. With --dry-run it shows the changes and makes none.

exit codes: 0 done, 1 failed, 2 bad arguments or settings, or a difference because of which messages could be lost`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := withInterrupt(cmd.Context())
			defer stop()
			return a.provision(ctx, dryRun)
		},
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show the changes, and make none")
	return c
}

func (a *app) provision(ctx context.Context, dryRun bool) error {
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	i, err := a.openBySettings(ctx, cfg)
	if err != nil {
		return err
	}
	defer i.Close()
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, provisionTimeout)
	defer cancelTimeout()
	p, err := i.Provision(ctx, dryRun)
	if err == nil || len(p.Changes) > 0 { // the changes before a failure are not undone
		a.showProvisioned(p)
	}
	if err != nil {
		return inspect.Cause(ctx, err)
	}
	for _, d := range p.Drift {
		if d.Fatal {
			return fmt.Errorf("%w: %s: %s", broker.ErrDrift, d.Stream, d.Difference)
		}
	}
	return nil
}

func (a *app) showProvisioned(p inspect.ProvisionReport) {
	if a.AsJSON(p) {
		return
	}
	if len(p.Changes) == 0 && len(p.Drift) == 0 {
		a.Printf("all %d streams exist; nothing to do\n", p.Wanted)
		return
	}
	t := a.Sheet([]terminal.Column{{Name: "stream"}, {Name: "result"}, {Name: "detail", Min: 12, Wrap: true}})
	for _, c := range p.Changes {
		result := c.Action
		if p.DryRun {
			result = "would be " + result
		}
		t.Add(c.Stream, result, c.Detail)
	}
	for _, d := range p.Drift {
		result := "differs"
		if d.Fatal {
			result = "FORBIDDEN"
		}
		t.Add(d.Stream, result, d.Difference)
	}
	t.Print()
}
