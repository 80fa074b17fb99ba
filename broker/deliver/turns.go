package deliver

import (
	"strconv"
	"strings"
	"time"
)

// turnMissed is the lateness from which a message has missed its turn. A busy machine is late by less.
const turnMissed = 250 * time.Millisecond

// turns are the times at which the rate of one target permits messages, an interval apart. Messages get them in the
// order in which they come.
//
// They are times of a clock of the target. The clock stops while the target is halted, and is set back by the time in
// which messages missed their turns. So a message keeps its place: it comes at the time that its turn had at first, is
// given back with the time that its turn has now, and waits again.
//
// The clock starts with the deliverer, and its times are durations since then.
type turns struct {
	interval time.Duration // between two messages; zero if the target has no rate
	free     time.Duration // the first turn that is not given yet
	taken    time.Duration // the last turn in which a message was sent
	behind   time.Duration // how far the clock is behind the deliverer's
	halted   bool          // the clock is stopped
	haltedAt time.Duration // by the deliverer's clock
	round    int           // the number of times that the clock was set back, or turns were revoked
	valid    int           // turns of an earlier round do not count
	revoked  time.Duration // by the deliverer's clock: the last turn that does not count
}

// turn is the turn of one message.
type turn struct {
	at    time.Duration
	round int // in which it was given
}

// now returns the time of the target's clock. Elapsed is the time of the deliverer's clock.
func (t *turns) now(elapsed time.Duration) time.Duration {
	if t.halted {
		elapsed = t.haltedAt
	}
	return elapsed - t.behind
}

// pending reports whether messages may still come in turns that were given.
func (t *turns) pending(elapsed time.Duration) bool {
	return t.free > t.now(elapsed) || t.revoked > elapsed
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

// setBack moves all turns that were given.
func (t *turns) setBack(by time.Duration) {
	t.behind += by
	t.round++
}

// postpone is called when a message comes late for its turn. It reports whether the message still has a turn. If no
// other message came for as long as this one is late, the clock is set back by that lateness, and by a little more if
// the message missed its turn, since others before it may have missed theirs. Otherwise only this message was held up,
// and those behind it have been sent. Then all turns are revoked, and each message gets a new one as it comes.
func (t *turns) postpone(at, now time.Duration) bool {
	late, idle := now-at, now-t.taken-t.interval
	switch {
	case late < turnMissed && idle < late: // those behind it have been sent, but it is in time
	case late < turnMissed:
		t.setBack(late)
	case late <= idle+turnMissed:
		t.setBack(min(idle, late+turnMissed))
	default:
		t.revoked = max(t.revoked, t.free+t.behind)
		t.round++
		t.valid = t.round
		t.free = t.taken + t.interval
		return false
	}
	return true
}

// pace gives a message a turn at its target's rate. It reports true, and the result, if the turn comes later.
//
// A message that has to wait for its turn is moved once, into a lane where it waits for that turn. So a backlog neither
// stays in memory nor goes round in the retry lanes. When the message comes again, it names its turn and the deliverer
// that gave it. A turn that another deliverer gave, in another instance or before a restart, does not count: this
// deliverer does not know which other turns it gave.
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
	if has && (own.at <= now || own.round == ts.round) { // in time by its lane's clock, which may differ a little
		ts.taken = max(ts.taken, own.at)
		return Result{}, false
	}
	at := own.at
	if !has {
		at = max(now, ts.free)
	}
	when := all.start.Add(at + ts.behind)
	if !m.Expires.IsZero() && when.After(m.Expires) {
		return Result{Outcome: Expired}, true // a new turn stays free
	}
	if !has {
		ts.free = at + ts.interval
	}
	if later = at > now; !later {
		ts.taken = at
	}
	return Result{Outcome: Paced, Turn: when, Paced: all.nameOf(turn{at: at, round: ts.round})}, later
}

// halt stops the clocks of the targets that are halted, and lets the others go on. The clock of a key goes on: its
// messages for other targets are sent.
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
