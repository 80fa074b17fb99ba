package engine

import (
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/leader"
	"delaybroker/broker/streams"
)

// This file decides when a lane's loop wakes up. A wake-up costs more than a message, so the loop combines all work
// that may wait.
//
//	a message that is due   at the end of the slack (config.Config.Slack)
//	a message to be moved   once in collect, which is less than the lookahead
//	an answer               at once, but not twice in the same slack
//	messages at the tail    with a slack, once in collect, or in the slack if that is longer: see
//	                        lane.ReaderConfig.Collect
//
// A message is never early: each wake-up is moved to a later time. Slacks end at multiples of their length, so all
// lanes wake up together.

const (
	// collect is how long the loop collects messages that are not due yet, to move or read them together. It is less than
	// half of the lookahead, so it uses none of the time that hopSlack leaves for a hop.
	collect = 20 * time.Millisecond
)

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

// slackBegin returns the beginning of the slack into which a time falls. Messages that were due by then are sent.
func slackBegin(t leader.Time, slack time.Duration) leader.Time { return t.Truncate(slack) }

// collects returns how long a reader collects messages at the tail of its lane. A message in the intake, or in the home
// of its rate, may be due immediately.
func collects(l streams.Spec, cfg config.Config) time.Duration {
	rated := len(cfg.Rates)+len(cfg.RatesByKey) > 0
	if cfg.Slack == 0 || l.Delay == 0 || rated && l.Delay <= maxHome {
		return cfg.Slack
	}
	return max(cfg.Slack, collect)
}

// rest is a time in which the loop does not handle answers. The zero rest is over.
type rest struct {
	until  time.Time // local
	worked bool      // in this pass, an answer came or a message was due
}

// slack returns the present slack of the lane. While messages wait to be moved, it is at most collect.
func (w *worker) slack() time.Duration {
	if w.flights.leaving > 0 {
		return min(w.plan.slack, collect)
	}
	return w.plan.slack
}

// restAfterPass begins a rest after a pass in which there was something to do.
func (w *worker) restAfterPass(m moment) {
	if w.rest.worked && w.plan.slack > 0 {
		w.rest.until = m.local.Add(slackEnd(m.now.Add(1), w.slack()).Sub(m.now))
	}
	w.rest.worked = false
}

// restless reports whether something waits for the next answer, so that the loop must not rest: due messages for the
// leader's time, a message to be read for room in memory, a backlog, or the firing of a timer.
func (w *worker) restless() bool {
	t := w.timers
	return w.clock.looking || w.backlog.open || w.stopped.Load() || w.full() || w.flights.blocked() ||
		len(t.mine)+len(t.uncopied)+len(t.unlooked)+t.copying+t.looking > 0
}
