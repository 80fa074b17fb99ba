package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/streams/provision"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

// provisionTimeout is the timeout of the command: it makes some forty streams, each with an election on a cluster.
const provisionTimeout = 2 * time.Minute

func (a *app) provisionCommand() *cobra.Command {
	var dryRun, check bool
	c := &cobra.Command{
		Use:   "provision",
		Short: "Create the missing streams, and report differences",
		Long: `Create the missing streams, and change existing ones to the settings: their subjects, the bounds of
DELAY_MAX_PENDING and DELAY_MAX_PENDING_BYTES, the duration and size of DELAY_JOURNAL, and the metadata of seals if it
is missing. The command reports all other differences, and never removes a stream. With DELAY_PROVISION=create, serve
makes the same changes at its start. Use the command if a job has the permission to create streams, and the broker does
not.

With --check, the command prints what the broker needs of each limit of the account, the server and the user, and
creates nothing. serve makes the same comparison before it creates a stream.

Set the brokers' environment variables for the command too. With --dry-run it shows the changes and makes none.

exit codes: 0 done, 1 failed, 2 bad arguments or settings, or a difference because of which messages could be lost`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := withInterrupt(cmd.Context())
			defer stop()
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
			if check {
				return a.checkFit(ctx, i)
			}
			return a.provision(ctx, i, dryRun)
		},
	}
	c.Flags().BoolVar(&check, "check", false, "only compare what the broker needs with the limits of account and server")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show the changes, and make none")
	return c
}

func (a *app) provision(ctx context.Context, i *inspect.Inspector, dryRun bool) error {
	ctx, cancel := context.WithTimeout(ctx, provisionTimeout)
	defer cancel()
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

// checkFit prints the needs of the broker and the limits. Its error has the needs that exceed their limits.
func (a *app) checkFit(ctx context.Context, i *inspect.Inspector) error {
	needs, err := i.Check(ctx)
	if err != nil {
		return inspect.Cause(ctx, err)
	}
	if !a.AsJSON(needs) {
		t := a.Sheet(
			[]terminal.Column{{Name: "limit"}, {Name: "need"}, {Name: "allowed"}, {Name: "setting", Min: 12, Wrap: true}},
		)
		for _, n := range needs {
			t.Add(n.What, n.Need, n.Limit, n.Setting)
		}
		t.Print()
	}
	if provision.Unfit(needs) != nil {
		return reportedError{provision.ErrFit}
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
