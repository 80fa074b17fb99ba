package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"delaybroker/broker/stats"
	"delaybroker/broker/web"
	"delaybroker/cmd/delaybroker/settings"
)

func (a *app) healthcheckCommand() *cobra.Command {
	var ready bool
	c := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check the broker on this host; exit code 1 if it is not healthy",
		Long: `Check whether the broker at DELAY_HTTP_ADDR is alive, for images without a shell or curl:

  HEALTHCHECK CMD ["delaybroker", "healthcheck"]

exit codes: 0 healthy, 1 not healthy or not reachable, 2 bad arguments or settings`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.healthcheck(cmd.Context(), ready) },
	}
	c.Flags().BoolVar(&ready, "ready", false,
		"check whether the broker delivers now (/readyz), not only whether it is alive (/healthz)")
	return c
}

func (a *app) healthcheck(ctx context.Context, ready bool) error {
	host, err := settings.ReadProbeURL()
	if err != nil {
		return err
	}
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	url := host + path
	h, err := web.Get(ctx, url)
	if err != nil {
		return fmt.Errorf("probe %s: %w", url, err)
	}
	asJSON := a.AsJSON(h)
	if bad := stats.FailingChecks(h.Checks); len(bad) > 0 {
		return fmt.Errorf("the broker fails checks of %s: %s", path, strings.Join(bad, "; "))
	}
	if !asJSON {
		a.Printf("ok\n")
	}
	return nil
}
