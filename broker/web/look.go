package web

import (
	"context"
	"time"

	"delaybroker/broker/doctor"
)

const (
	// maxProbes is the maximum number of probes of a broker that is not ready, and probeInterval is the time between
	// two probes. So a broker may become ready during Look.
	maxProbes     = 5
	probeInterval = 500 * time.Millisecond
)

// Look requests /healthz and /readyz from the broker at a URL. If the URL is empty, Look sends no request, and returns
// the zero Probe.
func Look(ctx context.Context, broker string) doctor.Probe {
	if broker == "" {
		return doctor.Probe{}
	}
	p := doctor.Probe{URL: broker + "/readyz"}
	if alive, err := Ask(ctx, broker+"/healthz"); err == nil {
		p.Alive = alive.Checks
	}
	for n := 1; ; n++ {
		ready, err := Ask(ctx, p.URL)
		p.Checks, p.Err = ready.Checks, err
		if err != nil || Fine(p.Checks) || n == maxProbes {
			return p
		}
		select {
		case <-ctx.Done():
			return p
		case <-time.After(probeInterval):
		}
	}
}
