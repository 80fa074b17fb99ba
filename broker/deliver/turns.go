package deliver

import (
	"strconv"
	"strings"
	"time"
)

// A message that is late by at least turnMissed has missed its turn. On a busy machine, messages are late by less.
const turnMissed = 250 * time.Millisecond

// turns gives turns to the messages of one bucket. A turn is a time at which the rate permits one message; successive
// turns are an interval apart. Messages get turns in the order in which they come.
//
// Turns are times of the bucket's own clock. The clock stops while the target is halted. When messages have missed
// their turns, the clock is set back by the time lost. So a message keeps its place among the other messages: it comes
// at the original time of its turn, is given back with the postponed time, and waits again.
//
// The bucket's clock starts together with the deliverer's clock. Times of either clock are durations since that start.
type turns struct {
	interval time.Duration // between two messages; zero if there is no rate
	nextFree time.Duration // the first turn that is not given yet
	lastSent time.Duration // the last turn in which a message was sent
	lag      time.Duration // the lag of the clock behind the deliverer's clock
	halted   bool          // the clock is stopped
	haltedAt time.Duration // when the clock stopped, by the deliverer's clock
	round    int           // incremented when the clock is set back, and when turns are revoked
	valid    int           // the first round whose turns are not revoked
	revoked  time.Duration // the last revoked turn, by the deliverer's clock
}

// turn is the turn of one message.
type turn struct {
	at    time.Duration
	round int // the value of turns.round when the turn was given
}

// now returns the time of the bucket's clock when the deliverer's clock shows elapsed.
func (t *turns) now(elapsed time.Duration) time.Duration {
	if t.halted {
		elapsed = t.haltedAt
	}
	return elapsed - t.lag
}

// pending reports whether messages that have turns may still come.
func (t *turns) pending(elapsed time.Duration) bool {
	return t.nextFree > t.now(elapsed) || t.revoked > elapsed
}

// halt stops or restarts the clock.
func (t *turns) halt(halted bool, elapsed time.Duration) {
	switch {
	case halted && !t.halted:
		t.haltedAt = elapsed
	case !halted && t.halted:
		t.setBack(elapsed - t.haltedAt)
	}
	t.halted = halted
}

// setBack sets the clock back, which postpones all turns that were given.
func (t *turns) setBack(by time.Duration) {
	t.lag += by
	t.round++
}

// postpone handles a message that comes late for its turn, and reports whether the message still has a turn.
//
// If no other message was sent for as long as this message is late, all messages were delayed. Then postpone sets the
// clock back by the lateness. If the message has missed its turn, postpone sets the clock back by a little more,
// because earlier messages may have missed their turns.
//
// If the message has missed its turn, and later messages have been sent meanwhile, only this message was delayed. Then
// postpone revokes all turns, and each message gets a new turn when it comes.
func (t *turns) postpone(at, now time.Duration) bool {
	late, idle := now-at, now-t.lastSent-t.interval
	switch {
	case late < turnMissed && idle < late: // later messages have been sent, but this message is in time
	case late < turnMissed:
		t.setBack(late)
	case late <= idle+turnMissed:
		t.setBack(min(idle, late+turnMissed))
	default:
		t.revoked = max(t.revoked, t.nextFree+t.lag)
		t.round++
		t.valid = t.round
		t.nextFree = t.lastSent + t.interval
		return false
	}
	return true
}

// pace gives a message a turn at the rate of its bucket. If the message must not be sent now, because its turn comes
// later or because it expires before its turn, later is true and r is the result.
//
// A message that has to wait for its turn is moved once, into a lane in which it waits. So a backlog neither stays in
// memory nor circulates in the retry lanes. When the message comes again, it names its turn and the deliverer that gave
// the turn. A turn of another deliverer, in another instance or before a restart, does not count, because this
// deliverer does not know the other turns of that deliverer.
func (all *targets) pace(t *target, m Message) (r Result, later bool) {
	ts := all.turnsOf(t, m.RateKey)
	if ts.interval == 0 {
		return Result{}, false
	}
	elapsed := time.Since(all.start)
	now := ts.now(elapsed)
	own, has := all.turnOf(m.Paced)
	has = has && own.round >= ts.valid
	if has && m.Repeated {
		return Result{}, false
	}
	if late := now - own.at; has && (late >= turnMissed || late > 0 && own.round != ts.round) {
		has = ts.postpone(own.at, now)
		now = ts.now(elapsed)
	}
	if has && (own.at <= now || own.round == ts.round) { // in its turn, by the lane's clock, which may be slightly fast
		ts.lastSent = max(ts.lastSent, own.at)
		return Result{}, false
	}
	at := own.at
	if !has {
		at = max(now, ts.nextFree)
	}
	when := all.start.Add(at + ts.lag)
	if !m.Expires.IsZero() && when.After(m.Expires) {
		return Result{Outcome: Expired}, true // the message takes no turn
	}
	if !has {
		ts.nextFree = at + ts.interval
	}
	if later = at > now; !later {
		ts.lastSent = at
	}
	return Result{Outcome: Paced, RetryAt: when, Paced: all.nameOf(turn{at: at, round: ts.round})}, later
}

// halt stops the clocks of the halted targets, and restarts the clocks of all other targets. The clock of a key does
// not stop, because the key's messages for other targets are still sent.
func (all *targets) halt(halted func(target string) bool) {
	elapsed := time.Since(all.start)
	for subject, t := range all.bySubject {
		if t.turns.interval > 0 {
			t.turns.halt(halted != nil && halted(subject), elapsed)
		}
	}
}

// nameOf returns the name of a turn, for a message to carry.
func (all *targets) nameOf(t turn) string {
	return all.pacer + "." + strconv.FormatInt(int64(t.round), 36) + "." + strconv.FormatInt(int64(t.at), 36)
}

// turnOf parses a name that nameOf returned. It returns false for a turn that another deliverer gave.
func (all *targets) turnOf(name string) (turn, bool) {
	pacer, rest, _ := strings.Cut(name, ".")
	round, at, ok := strings.Cut(rest, ".")
	if pacer != all.pacer || !ok {
		return turn{}, false
	}
	r, errRound := strconv.ParseInt(round, 36, 0)
	d, errAt := strconv.ParseInt(at, 36, 64)
	return turn{at: time.Duration(d), round: int(r)}, errRound == nil && errAt == nil
}
