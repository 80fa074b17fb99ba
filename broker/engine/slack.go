package engine

import (
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/leader"
	"delaybroker/broker/streams"
)

// This file decides when a lane's loop wakes up. A wake-up costs more than a message, so one wake-up does all work that
// may wait:
//
//	a due message               at the end of the slack (config.Config.Slack)
//	a message that waits for    at the end of collect, which is less than the lookahead
//	a hop
//	an answer                   immediately, but at most once in a slack
//	a message that was just     with a slack, at the end of collect, or of the slack if that is longer: see
//	stored                      lane.ReaderConfig.Collect
//
// No message is early: a wake-up is only moved to a later time. Slacks end at multiples of their length, so all lanes
// wake up at the same time.

// collect is the time for which the loop collects messages that are not due yet, to move or read them together. It is
// less than half of the lookahead, so it uses none of the time that hopSlack leaves for a hop.
const collect = 20 * time.Millisecond

// slackEnd returns the end of the slack into which a time falls.
func slackEnd(t leader.Time, slack time.Duration) leader.Time {
	if slack == 0 {
		return t
	}
	if began := slackBegin(t, slack); began.Before(t) {
		return began.Add(slack)
	}
	return t
}

// slackBegin returns the beginning of the slack into which a time falls.
func slackBegin(t leader.Time, slack time.Duration) leader.Time { return t.Truncate(slack) }

// collects returns the time for which a reader collects messages at the tail of its lane. In the intake, and in a level
// that may be the home of a rate, it is at most the slack: a message may be due when it is stored.
func collects(l streams.Spec, cfg config.Config) time.Duration {
	rated := len(cfg.Rates)+len(cfg.RatesByKey) > 0
	if cfg.Slack == 0 || l.Delay == 0 || rated && l.Delay <= maxHome {
		return cfg.Slack
	}
	return max(cfg.Slack, collect)
}

// rest is a period in which the loop does not handle answers. The zero rest is over.
type rest struct {
	until  time.Time // local
	worked bool      // since the last pass, an answer came or a message was due
}

// slack returns the present slack of the lane. While messages wait for a hop, it is at most collect.
func (w *worker) slack() time.Duration {
	if w.flights.leaving > 0 {
		return min(w.plan.slack, collect)
	}
	return w.plan.slack
}

// restAfterPass begins a rest after a pass in which the loop has worked.
func (w *worker) restAfterPass(m moment) {
	if w.rest.worked && w.plan.slack > 0 {
		w.rest.until = m.local.Add(slackEnd(m.now.Add(1), w.slack()).Sub(m.now))
	}
	w.rest.worked = false
}

// restless reports whether the loop must not rest, because work waits for the next answer: due messages for the
// leader's time, reading for memory, a backlog, a stop, or the firing of a timer.
func (w *worker) restless() bool {
	t := w.timers
	return w.clock.looking || w.backlog.open || w.stopped.Load() || w.full() || w.flights.blocked() ||
		len(t.mine)+len(t.uncopied)+len(t.unlooked)+t.copying+t.looking > 0
}
