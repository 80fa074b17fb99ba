package main

import (
	"github.com/spf13/cobra"

	"delaybroker/cmd/delaybroker/process"
	"delaybroker/cmd/delaybroker/settings"
)

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

// serve runs the broker until the context ends, a signal arrives, or the broker fails.
func (a *app) serve(cmd *cobra.Command, _ []string) error {
	cfg, err := settings.Read()
	if err != nil {
		a.warnUnknownSettings() // without valid settings, there is no log; a misspelt name may be the cause of err
		return err
	}
	settings.ConfigureGC(settings.ReadMemory(), cfg.Broker.HoldBytes, cfg.Embedded != nil)
	log := cfg.Log.Logger(a.Err)
	for _, u := range settings.Unknown() {
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
	if err := p.Run(cmd.Context()); err != nil {
		log.Error("the broker has stopped after an error", "err", err)
		return reportedError{err}
	}
	log.Info("the broker has stopped")
	return nil
}
