package deliver

import (
	"crypto/rand"
	"strconv"
	"time"
)

const (
	// remember is how many idle targets, and idle groups of them, are kept with what is known of them.
	remember = 4096
	// turnMissed is how long after its turn a message has missed it. A busy machine is late by less.
	turnMissed = 250 * time.Millisecond
)

// targets are the subjects that are delivered to. They are guarded by the deliverer's lock.
type targets struct {
	bySubject map[string]*target
	rates     Rates
	counts    *Counts
	pacer     string // the name of this deliverer alone, for the turns that it gives
	sweepAt   int    // the number of targets at which idle ones are looked for again
}

// target is what is known of one subject.
type target struct {
	subject  string
	open     int // deliveries that have no result yet
	unsent   int // those of them that had to wait and are not sent yet
	count    *Count
	group    *group
	snapshot *snapshot // the streams by which the group was chosen

	stream   string    // the stream that acknowledged last
	streamAt time.Time // when it did

	forbidden time.Time // when the server last refused a publish to it

	interval time.Duration // between two messages; zero if the target has no rate
	free     time.Time     // the next turn that nobody has
	taken    time.Time     // when a message last came in its turn
	rounds   int           // how often the turns were given anew
	given    time.Time     // the last turn that was given before that
}

func newTargets(rates Rates, counts *Counts) *targets {
	return &targets{bySubject: make(map[string]*target), rates: rates, counts: counts, pacer: rand.Text()[:8]}
}

// of returns the target of a subject.
func (all *targets) of(subject string) *target {
	t := all.bySubject[subject]
	if t == nil {
		all.sweep()
		t = &target{subject: subject, interval: all.rates.interval(subject), count: all.counts.of(subject)}
		all.bySubject[subject] = t
	}
	return t
}

// forbid notes that the server has refused a publish to a subject.
func (all *targets) forbid(subject string, now time.Time) {
	if t := all.bySubject[subject]; t != nil {
		t.forbidden = now
	}
}

// gone notes that a delivery that was never sent has its result.
func (t *target) gone() {
	t.open--
	t.unsent--
}

// sweep forgets idle targets when there are many.
func (all *targets) sweep() {
	if len(all.bySubject) < max(remember, all.sweepAt) {
		return
	}
	now := time.Now()
	for subject, t := range all.bySubject {
		if t.open == 0 && !t.free.After(now) && !t.given.After(now) {
			delete(all.bySubject, subject)
		}
	}
	all.sweepAt = 2 * len(all.bySubject) // the others are busy: do not search them for each new target
}

// pace gives a message a turn at its target's rate. It reports true, and the result, if the turn comes later.
//
// A message that has to wait for its turn is moved once, into a lane where it waits for that turn. So a backlog neither
// stays in memory nor goes round in the retry lanes. When the message comes again, it names the deliverer that gave the
// turn. A turn that another deliverer gave does not count, in another instance or before a restart: this deliverer does
// not know which other turns that one gave.
//
// When nothing could be sent for a while, many messages have missed their turns, and would all come at once. So the
// first of them has all turns given anew. The messages take new ones as they come: the earlier their old turn, the
// earlier the new one.
func (all *targets) pace(t *target, m Message) (r Result, later bool) {
	if t.interval == 0 {
		return Result{}, false
	}
	now := time.Now()
	if m.Paced == all.pacerOf(t) {
		if m.Turn.IsZero() || now.Sub(m.Turn) < turnMissed {
			t.taken = now
			return Result{}, false
		}
		t.anew(t.taken.Add(t.interval))
	}
	turn := now
	if t.free.After(now) {
		turn = t.free
	}
	if !m.Expires.IsZero() && turn.After(m.Expires) {
		return Result{Outcome: Expired}, true // the turn stays free
	}
	t.free = turn.Add(t.interval)
	if later = turn.After(now); !later {
		t.taken = now
	}
	return Result{Outcome: Paced, Turn: turn, Pacer: all.pacerOf(t)}, later
}

// anew takes back all turns that were given; the next is free from a time on.
func (t *target) anew(free time.Time) {
	if t.free.After(t.given) {
		t.given = t.free
	}
	t.rounds++
	t.free = free
}

// pacerOf is the name under which turns at a target are given now.
func (all *targets) pacerOf(t *target) string {
	if t.rounds == 0 {
		return all.pacer
	}
	return all.pacer + "." + strconv.Itoa(t.rounds)
}

// halt takes back the turns at some targets: what has one comes when nothing is sent, and takes another one later.
// Otherwise those would all be behind the turns that were given for days ahead.
func (all *targets) halt(halted func(target string) bool, now time.Time) {
	for subject, t := range all.bySubject {
		if t.free.After(now) && halted(subject) {
			t.anew(time.Time{})
		}
	}
}
