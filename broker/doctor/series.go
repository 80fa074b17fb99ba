package doctor

import (
	"context"
	"fmt"

	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

// listPausedSeries returns the key, the target and the reason of each series that is paused because of dead letters, as
// far as it is among the oldest 100,000 entries. It ignores errors: the user may lack the permission to read timers.
func (i gatherer) listPausedSeries(ctx context.Context) (paused []string) {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	list, _ := i.Timers().List(ctx, store.Filter{State: timer.Paused}, store.Page{Limit: store.MaxLimit})
	for _, row := range list.Timers {
		if row.Why != "" && !row.Unopened { // empty after an operator's pause
			paused = append(paused, fmt.Sprintf("%s %s (%s)", row.Key, row.Target, message.Reason(row.Why)))
		}
	}
	return paused
}

// checkSeries reports the series that the broker has paused because of Delay-Pause-After.
func checkSeries(f Facts) []Finding {
	if len(f.pausedSeries) == 0 {
		return nil
	}
	return finding(Warn, "repair the target, then delaybroker schedules resume; schedules ls shows the reasons",
		"paused after dead letters: %s", text.ShortList(f.pausedSeries))
}
