package deliver

import (
	"strconv"
	"strings"
	"time"
)

// turnMissed is the lateness from which on a message has missed its turn. The load of a busy machine makes messages
// less late than turnMissed.
const turnMissed = 250 * time.Millisecond

// turns gives turns to the messages of one bucket. A turn is a time at which the rate permits one message; successive
// turns are at least an interval apart. Messages get turns in the order in which they come.
//
// Turns are times of the bucket's own clock. The clock of a target stops while the target is halted. When all messages
// have missed their turns, the clock is set back by the lost time, because otherwise all missed turns would be due at
// the same time. The messages keep their order: each comes at the original time of its turn, is given back with the
// postponed time, and waits again.
//
// The bucket's clock starts together with the deliverer's clock. Times of either clock are durations since that start.
type turns struct {
	interval time.Duration // between two messages; zero if there is no rate
	nextFree time.Duration // the earliest turn that may be given next
	lastSent time.Duration // the latest turn in which a message was sent
	lag      time.Duration // the lag of the clock behind the deliverer's clock
	halted   bool          // the clock is stopped
	haltedAt time.Duration // when the clock stopped, by the deliverer's clock
	revision int           // incremented when the clock is set back, and when turns are revoked

	firstValidRevision int           // the first revision whose turns are not revoked
	lastRevoked        time.Duration // all revoked turns are before this time of the deliverer's clock
}

type turn struct {
	at       time.Duration
	revision int // the value of turns.revision when the turn was given
}

// now returns the time of the bucket's clock when the deliverer's clock shows elapsed.
func (t *turns) now(elapsed time.Duration) time.Duration {
	if t.halted {
		elapsed = t.haltedAt
	}
	return elapsed - t.lag
}

// pending reports whether a message with a future turn, valid or revoked, may still come.
func (t *turns) pending(elapsed time.Duration) bool {
	return t.nextFree > t.now(elapsed) || t.lastRevoked > elapsed
}

func (t *turns) halt(halted bool, elapsed time.Duration) {
	switch {
	case halted && !t.halted:
		t.haltedAt = elapsed
	case !halted && t.halted:
		t.setBack(elapsed - t.haltedAt)
	}
	t.halted = halted
}

// setBack sets the clock back by d, which postpones all turns that were given.
func (t *turns) setBack(d time.Duration) {
	t.lag += d
	t.revision++
}

// postpone handles a message that comes late for its turn, and reports whether the turn is still valid. At is the turn,
// and now is the time of the bucket's clock. The bucket is idle while the rate permits a message and none is sent.
//
//   - Late by less than turnMissed, and idle for less than the lateness: later messages were sent, but this message
//     keeps its turn.
//   - Late by less than turnMissed, and idle for at least the lateness: all messages were delayed. Postpone sets the
//     clock back by the lateness.
//   - Late by more, and idle for at least the lateness minus turnMissed: all messages were delayed, and earlier
//     messages may have missed their turns too. Postpone sets the clock back by the idle time, but by at most the
//     lateness plus turnMissed.
//   - Late by more, and idle for less than that: only this message was delayed. Postpone revokes all turns, and each
//     message gets a new turn when it comes.
func (t *turns) postpone(at, now time.Duration) bool {
	lateness, idleTime := now-at, now-t.lastSent-t.interval
	switch {
	case lateness < turnMissed && idleTime < lateness:
	case lateness < turnMissed:
		t.setBack(lateness)
	case lateness <= idleTime+turnMissed:
		t.setBack(min(idleTime, lateness+turnMissed))
	default:
		t.lastRevoked = max(t.lastRevoked, t.nextFree+t.lag)
		t.revision++
		t.firstValidRevision = t.revision
		t.nextFree = t.lastSent + t.interval
		return false
	}
	return true
}

// pace gives a message a turn at the rate of its bucket, and reports whether to send the message now. If the turn comes
// later, or if the message expires before its turn, pace returns the result of the delivery.
//
// A message that has to wait for its turn is moved into a lane in which it waits until then. So a backlog neither stays
// in memory nor circulates in the retry lanes. When the message comes again, it names its turn and the deliverer that
// gave the turn. A turn of another deliverer, in another instance or before a restart, does not count, because this
// deliverer does not know the other turns of that deliverer.
func (ts *targets) pace(t *target, m Message) (r Result, sendNow bool) {
	b := ts.turnsOf(t, m.RateKey)
	if b.interval == 0 {
		return Result{}, true
	}
	elapsed := time.Since(ts.start)
	now := b.now(elapsed)
	tn, valid := ts.parseTurn(m.Turn)
	valid = valid && tn.revision >= b.firstValidRevision
	if valid && m.Repeated {
		return Result{}, true
	}
	if lateness := now - tn.at; valid && (lateness >= turnMissed || lateness > 0 && tn.revision != b.revision) {
		valid = b.postpone(tn.at, now)
		now = b.now(elapsed)
	}
	// With a turn of the present revision, a message is sent even before its turn: its lane's clock may be slightly fast.
	if valid && (tn.at <= now || tn.revision == b.revision) {
		b.lastSent = max(b.lastSent, tn.at)
		return Result{}, true
	}
	at := tn.at
	if !valid {
		at = max(now, b.nextFree)
	}
	sendAt := ts.start.Add(at + b.lag)
	if !m.Expires.IsZero() && sendAt.After(m.Expires) {
		return Result{Outcome: Expired, Reason: "the rate of its target or key had no free turn"}, false // it takes no turn
	}
	if !valid {
		b.nextFree = at + b.interval
	}
	if at <= now {
		b.lastSent = at
		return Result{}, true
	}
	return Result{Outcome: Paced, RetryAt: sendAt, Turn: ts.turnName(turn{at: at, revision: b.revision})}, false
}

// halt stops the clocks of the halted targets, and restarts the clocks of all other targets. The clock of a key does
// not stop, because the key's messages for other targets are still sent.
func (ts *targets) halt(isHalted func(target string) bool) {
	elapsed := time.Since(ts.start)
	for subject, t := range ts.bySubject {
		if t.turns.interval > 0 {
			t.turns.halt(isHalted != nil && isHalted(subject), elapsed)
		}
	}
}

// turnName returns the name of a turn, for a message to carry.
func (ts *targets) turnName(t turn) string {
	return ts.pacer + "." + strconv.FormatInt(int64(t.revision), 36) + "." + strconv.FormatInt(int64(t.at), 36)
}

// parseTurn parses a name that turnName returned. It returns false for a turn that another deliverer gave, and for any
// other text.
func (ts *targets) parseTurn(name string) (turn, bool) {
	pacer, rest, _ := strings.Cut(name, ".")
	revisionText, atText, ok := strings.Cut(rest, ".")
	if pacer != ts.pacer || !ok {
		return turn{}, false
	}
	revision, errRevision := strconv.ParseInt(revisionText, 36, 0)
	at, errAt := strconv.ParseInt(atText, 36, 64)
	return turn{at: time.Duration(at), revision: int(revision)}, errRevision == nil && errAt == nil
}
