package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"delaybroker/cmd/delaybroker/process"
	"delaybroker/cmd/delaybroker/settings"
)

func (a *app) serve(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), a.Err) }

func (a *app) serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the broker until SIGINT or SIGTERM (the default)",
		Args:  noArguments,
		RunE:  a.serve,
	}
	c.SetHelpFunc(func(*cobra.Command, []string) { _ = settings.WriteTable(a.Out) }) // fails only if stdout is closed
	return c
}

// serve runs the broker until ctx ends, a signal arrives, or the broker fails.
func serve(ctx context.Context, stderr io.Writer) error {
	unknown := settings.Unknown()
	cfg, err := settings.Read()
	if err != nil {
		// Without valid settings, there is no log. A misspelt name may be the cause of err.
		for _, u := range unknown {
			fmt.Fprintln(stderr, "delaybroker:", u)
		}
		return err
	}
	settings.ConfigureGC(settings.ReadMemory(), cfg.Broker.HoldBytes, cfg.Embedded != nil)
	log := cfg.Log.Logger(stderr)
	for _, u := range unknown {
		warning := log.With("name", u.Name)
		if u.Suggestion != "" {
			warning = warning.With("nearest", u.Suggestion)
		}
		warning.Warn("the environment variable is not a setting; serve --help lists the settings")
	}
	build := readBuild()
	p := process.Process{
		Config: cfg, Log: log,
		Version: build.name(), Revision: orUnknown(build.revision), GoVersion: orUnknown(build.goVersion),
	}
	if err := p.Run(ctx); err != nil {
		log.Error("the broker has stopped after an error", "err", err)
		return reportedError{err}
	}
	log.Info("the broker has stopped")
	return nil
}
