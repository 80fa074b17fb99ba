package broker

import (
	"time"

	"delaybroker/broker/outbox"
	"delaybroker/levels"
)

// near is how soon a message must be due to be held in memory whatever is held already.
const near = 250 * time.Millisecond

// spill decides what becomes of a message that should wait in memory when much already does. A lane without a delay
// must not stop reading because of what is far, or what is near waits behind it: beyond the bound, what is not near is
// stored in the longest level that fits instead, which lets it wait among its like. Where none does, a level that is read
// at once will do, and in no other: there it would wait behind what is due later. Then it stays, and where the shortest
// level is longer than readAhead, the intake may come to read no further until something is due. In a level everything is
// about equally far, so it simply reads on later.
func (w *worker) spill(at, now time.Time) (levels.Level, bool) {
	if w.lane.Delay > 0 || w.held <= w.cfg.HoldMessages && !w.account.half() {
		return levels.Level{}, false
	}
	if at.Sub(now) < near {
		return levels.Level{}, false
	}
	all := w.cfg.Ladder.Levels()
	fits := all[0]
	for _, l := range all[1:] {
		if l.Delay > at.Sub(now) {
			break
		}
		fits = l
	}
	return fits, fits.Delay <= max(at.Sub(now), readAhead)
}

// repeat holds a message whose publish told us nothing: until there is a connection again, if that was the reason.
func (w *worker) repeat(h *held, err error, now time.Time) {
	if outbox.Offline(err) {
		w.wheel.Add(now, h)
		return
	}
	w.again(h, now)
}

// again holds a message whose publish told us nothing, or found no room. The wait grows from 50 ms to 3.2 s, or so far that
// a lane which holds thousands of such messages repeats one of them every millisecond: a server that is full should not have
// more to do than one that is not. It ends when the message is due: what no level takes, the target may.
func (w *worker) again(h *held, now time.Time) {
	w.counts.repeats.Add(1)
	wait := 50 * time.Millisecond << min(h.tries, 6)
	if h.tries > 6 {
		wait = max(wait, time.Duration(w.held)*time.Millisecond)
	}
	at := now.Add(wait)
	if due := h.request.When(); due.After(now) && due.Before(at) {
		at = due
	}
	w.wheel.Add(at, h)
	h.tries++
}
