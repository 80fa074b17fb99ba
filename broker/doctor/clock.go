package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/lane"
	"delaybroker/broker/text"
)

// A clock difference above clockWarn is a warning. A difference above clockCritical is critical.
const clockWarn, clockCritical = time.Second, 10 * time.Second

// clockReading is a reading of a leader's clock.
type clockReading struct {
	leader   string        // empty on a single server
	offset   time.Duration // the server's clock minus the local clock
	maxError time.Duration // maximum error of offset
}

// readClocks compares the local clock with the clock of each leader of a lane.
func (i gatherer) readClocks(ctx context.Context, v inspect.Lanes) []clockReading {
	var clocks []clockReading
	leaders := make(map[string]bool)
	for _, l := range v.Lanes {
		if l.Info == nil {
			continue
		}
		leader := lane.SampleOf(l.Info, time.Time{}).Leader
		if leaders[leader] {
			continue
		}
		leaders[leader] = true
		const attempts = 3
		if offset, margin, err := i.Clock(ctx, l.Stream, attempts); err == nil {
			clocks = append(clocks, clockReading{leader, offset, margin})
		}
	}
	return clocks
}

func checkClocks(f Facts) []Finding {
	if len(f.clocks) == 0 {
		return nil
	}
	worst := slices.MaxFunc(f.clocks, func(a, b clockReading) int {
		return cmp.Compare(a.offset.Abs()-a.maxError, b.offset.Abs()-b.maxError)
	})
	const advice = "synchronise the server and this host by NTP: the broker uses the server's clock, and a client" +
		" computes due times by its own clock"

	clock, detail := "the server's clock", ""
	if worst.leader != "" {
		clock = "the clock of " + worst.leader
	}
	difference := worst.offset.Abs() - worst.maxError // the true difference is at least this
	switch {
	case difference <= 0:
		detail = clock + " equals the local clock, within " + text.Span(worst.maxError)
	case worst.offset > 0:
		detail = fmt.Sprintf("%s is %s ahead of the local clock", clock, text.Span(worst.offset))
	default:
		detail = fmt.Sprintf("%s is %s behind the local clock", clock, text.Span(-worst.offset))
	}
	switch {
	case difference > clockCritical:
		return finding(Critical, advice, "%s", detail)
	case difference > clockWarn:
		return finding(Warn, advice, "%s", detail)
	}
	return finding(Fine, "", "%s", detail)
}
