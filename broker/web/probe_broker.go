package web

import (
	"context"
	"time"

	"delaybroker/broker/doctor"
)

const (
	// maxProbes is the maximum number of requests of /readyz, and probeInterval is the time between two of them. So a
	// broker may become ready during ProbeBroker.
	maxProbes     = 5
	probeInterval = 500 * time.Millisecond
)

// ProbeBroker requests /healthz and /readyz from the broker at a URL. If the URL is empty, it sends no request, and
// returns the zero Probe.
func ProbeBroker(ctx context.Context, broker string) doctor.Probe {
	if broker == "" {
		return doctor.Probe{}
	}
	p := doctor.Probe{URL: broker + "/readyz"}
	if alive, err := Get(ctx, broker+"/healthz"); err == nil {
		p.Alive = alive.Checks
	}
	for n := 1; ; n++ {
		ready, err := Get(ctx, p.URL)
		p.Checks, p.Err = ready.Checks, err
		if err != nil || AllPass(p.Checks) || n == maxProbes {
			return p
		}
		select {
		case <-ctx.Done():
			return p
		case <-time.After(probeInterval):
		}
	}
}
