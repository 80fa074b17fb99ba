package broker

import (
	"log/slog"
	"time"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// hop moves a message into a level.
func (w *worker) hop(h *held, level levels.Level) {
	h.moves = &w.counts.hops
	w.append(h, w.names.LevelStream(level.Name), w.names.Hop(level.Name, h.request.Target), h.request.HopHeader(), func(now time.Time, refusal jsapi.Ack) {
		if h.below = level.Name; refusal.Code == jsapi.CodeTooLarge && h.request.Paced != "" {
			w.wheel.Add(h.request.When(), h) // it is in its last lane, and only its target's rate makes it wait
			return
		}
		if refusal.Code == jsapi.CodeTooLarge {
			w.bury(h, tooLarge(len(h.Data)), h.request)
			return
		}
		if _, ok := w.cfg.Ladder.Below(level); ok {
			w.step(h, now) // roomy finds the next smaller level
			return
		}
		w.complain(now, slog.LevelWarn, "no level takes messages; trying again", "level", level.Name, "reason", refusal.Description)
		h.below = ""
		w.again(h, now)
	})
}

// roomy is the level to try, or a smaller one if that has just refused.
func (w *worker) roomy(h *held, level levels.Level) levels.Level {
	if refused, ok := w.cfg.Ladder.Lookup(h.below); ok && refused.Delay <= level.Delay {
		if smaller, ok := w.cfg.Ladder.Below(refused); ok {
			return smaller
		}
	}
	return level
}

// retry moves a message into a retry lane, as what its request is then. An attempt counts when it has been stored: what no
// lane takes stays as it was and is delivered from here, however long it takes.
func (w *worker) retry(h *held, wait levels.Level, then message.Request) {
	h.moves = &w.counts.retries
	w.append(h, w.names.RetryStream(wait.Name), w.names.Retry(wait.Name, h.request.Target), then.HopHeader(), func(now time.Time, refusal jsapi.Ack) {
		if refusal.Code == jsapi.CodeTooLarge && then.Attempts > h.request.Attempts { // or it would be refused for ever
			w.bury(h, tooLarge(len(h.Data)), then)
			return
		}
		w.complain(now, slog.LevelWarn, "a retry lane takes nothing; trying again from here", "lane", wait.Name, "reason", refusal.Description)
		w.again(h, now)
	})
}

// bury stores a message among the dead letters, as what its request is then. Of a last attempt that is not stored there
// goes what goes for the others: the target may take the message before there is room here.
func (w *worker) bury(h *held, p *message.Problem, then message.Request) {
	h.problem, h.moves = p, w.tally.dead[p.Code]
	w.append(h, w.names.DeadStream(), w.names.Dead(p.Code, h.request.Target), then.DeadHeader(p), func(now time.Time, refusal jsapi.Ack) {
		w.complain(now, slog.LevelError, "dead letters are not stored; trying again", "code", p.Code, "reason", refusal.Description)
		if then.Attempts > h.request.Attempts {
			h.problem = nil
		}
		w.again(h, now)
	})
}

func tooLarge(size int) *message.Problem {
	return message.Problemf(message.TooLarge, "%d bytes and headers are more than the levels accept: publish less, or raise max_payload", size)
}
