package web

import (
	"context"
	"time"

	"delaybroker/broker/doctor"
)

const (
	// maxLooks is the maximum number of probes of a broker that is not ready. With pauseBetween between two probes,
	// Look does not report a short transition, such as a start.
	maxLooks     = 5
	pauseBetween = 500 * time.Millisecond
)

// Look asks the broker at a URL whether it is alive and ready. For an empty URL it sends no request.
func Look(ctx context.Context, broker string) doctor.Probe {
	if broker == "" {
		return doctor.Probe{}
	}
	p := doctor.Probe{URL: broker + "/readyz"}
	if alive, err := Ask(ctx, broker+"/healthz"); err == nil {
		p.Alive = alive.Checks
	}
	for look := 1; ; look++ {
		ready, err := Ask(ctx, p.URL)
		p.Checks, p.Err = ready.Checks, err
		if err != nil || Fine(p.Checks) || look == maxLooks {
			return p
		}
		select {
		case <-ctx.Done():
			return p
		case <-time.After(pauseBetween):
		}
	}
}
