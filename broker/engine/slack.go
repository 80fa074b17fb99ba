package engine

import (
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/leader"
	"delaybroker/broker/streams"
)

// This file decides when a lane's loop wakes up. A wake-up costs more than a message, so the loop collects work and
// does it in one wake-up. An operator sets the slack (config.Config.Slack), the time for which due messages may wait.
//
//	event                         time of the wake-up
//	a due message                 at the end of the slack
//	a message that awaits a hop   at the end of the slack, but after at most batchWindow
//	an answer                     immediately, or at the end of the cooldown after the last work; an answer that only
//	                              ends its message does not shorten a sleep of at most answerWindow
//	a message that was just       immediately, or at the end of the reader's batch window: see readerBatchWindow
//	stored
//
// No message is early: a wake-up is only moved to a later time. Time is divided into slacks of this length, and a slack
// ends at the same moment for all lanes, so all lanes wake up together.

// batchWindow is the time for which the loop collects messages that are not due yet, to move or read them together. It
// is less than half of the lookahead, so that at least hopSlack remains for the publish of a hop.
const batchWindow = 20 * time.Millisecond

// slackEnd returns the end of the slack into which a time falls.
func slackEnd(t leader.Time, slack time.Duration) leader.Time {
	if began := slackBegin(t, slack); began.Before(t) {
		return began.Add(slack)
	}
	return t
}

// slackBegin returns the beginning of the slack into which a time falls.
func slackBegin(t leader.Time, slack time.Duration) leader.Time { return t.Truncate(slack) }

// readerBatchWindow returns the time for which the reader of a lane collects messages. Without a slack, it is zero. In
// a lane without a delay, it is the slack, because a message may be due when it is stored. In any other lane, it is at
// least batchWindow.
func readerBatchWindow(l streams.Spec, cfg config.Config) time.Duration {
	if cfg.Slack == 0 || l.Delay == 0 {
		return cfg.Slack
	}
	return max(cfg.Slack, batchWindow)
}

// cooldown is a period in which the loop does not wake up for answers. The zero cooldown has ended.
type cooldown struct {
	until  time.Time // local
	worked bool      // in the present pass, the loop has handled an event, or taken a message off the wheel
}

// slack returns the length of the lane's present slack: at most batchWindow while messages await a hop, otherwise the
// setting.
func (w *worker) slack() time.Duration {
	if w.flights.hopWaits > 0 {
		return min(w.plan.Slack, batchWindow)
	}
	return w.plan.Slack
}

// startCooldown begins a cooldown after a pass in which the loop has worked, if there is a slack.
func (w *worker) startCooldown(m moment) {
	if w.cooldown.worked && w.plan.Slack > 0 {
		w.cooldown.until = m.local.Add(slackEnd(m.now.Add(1), w.slack()).Sub(m.now))
	}
	w.cooldown.worked = false
}

// mustHandleAnswers reports whether the loop must wake up for answers in spite of a cooldown, because work depends on
// them: due messages that need the leader's time, reading that needs memory, a backlog, a stop, or the firing of a
// timer.
func (w *worker) mustHandleAnswers() bool {
	t := w.timers
	return w.clock.sampling || w.backlog.open || w.stopped.Load() || w.full() || w.flights.blocked() ||
		t.lane.Claims()+t.queued()+t.copyReads+len(t.reads.begun) > 0
}
