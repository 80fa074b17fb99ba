package deliver

import (
	"crypto/rand"
	"maps"
	"strings"
	"time"
)

// remember is the number of idle targets, and of idle groups, that are kept.
const remember = 4096

// targets holds all targets. The deliverer's lock guards it.
type targets struct {
	bySubject map[string]*target
	byKey     map[string]*turns // by bucket
	limits    Limits
	counts    *Counts
	pacer     string    // the unique name of this deliverer, for the turns that it gives
	start     time.Time // when the deliverer was made
	sweepAt   int       // the number of targets at which idle ones are swept again

	sweepKeysAt int // likewise for keys
}

// target is the state of one subject.
type target struct {
	subject  string
	open     int // deliveries that have no result yet
	unsent   int // of these, deliveries that had to wait and are not sent yet
	count    *Count
	group    *group
	snapshot *snapshot // the snapshot by which the group was chosen

	stream   string    // the stream that acknowledged last
	streamAt time.Time // when it did

	forbidden time.Time // when the server last refused a publish to it

	turns turns // at its rate
}

func newTargets(limits Limits, counts *Counts) *targets {
	return &targets{
		bySubject: make(map[string]*target), byKey: make(map[string]*turns), limits: limits, counts: counts,
		pacer: rand.Text()[:8], start: time.Now(),
	}
}

// of returns the target of a subject.
func (all *targets) of(subject string) *target {
	t := all.bySubject[subject]
	if t == nil {
		all.sweep()
		_, interval := all.limits.Bucket(subject, "")
		subject = strings.Clone(subject) // so that the message's memory, of which it may be a part, can be freed
		t = &target{subject: subject, turns: turns{interval: interval}, count: all.counts.of(subject)}
		all.bySubject[subject] = t
	}
	return t
}

// turnsOf returns the turns of a message's key, or the turns of its target.
func (all *targets) turnsOf(t *target, key string) *turns {
	bucket, interval := all.limits.Bucket(t.subject, key)
	if bucket == t.subject {
		return &t.turns
	}
	ts := all.byKey[bucket]
	if ts == nil {
		all.sweepKeys()
		ts = &turns{interval: interval}
		all.byKey[bucket] = ts
	}
	return ts
}

// sweepKeys forgets idle keys when there are many.
func (all *targets) sweepKeys() {
	if len(all.byKey) < max(remember, all.sweepKeysAt) {
		return
	}
	elapsed := time.Since(all.start)
	maps.DeleteFunc(all.byKey, func(_ string, ts *turns) bool { return !ts.pending(elapsed) })
	all.sweepKeysAt = 2 * len(all.byKey) // the others are busy
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

// open returns the targets, among those for which which returns true, that have deliveries without a result.
func (all *targets) open(which func(target string) bool) (open []*target) {
	for subject, t := range all.bySubject {
		if t.open > 0 && which(subject) {
			open = append(open, t)
		}
	}
	return open
}

// sweep forgets idle targets when there are many.
func (all *targets) sweep() {
	if len(all.bySubject) < max(remember, all.sweepAt) {
		return
	}
	elapsed := time.Since(all.start)
	for subject, t := range all.bySubject {
		if t.open == 0 && !t.turns.pending(elapsed) {
			delete(all.bySubject, subject)
		}
	}
	all.sweepAt = 2 * len(all.bySubject) // the others are busy: do not search them again for each new target
}
