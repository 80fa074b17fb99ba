package deliver

import (
	"crypto/rand"
	"maps"
	"strings"
	"time"
)

// A sweep removes idle targets only if there are at least maxIdle targets. The same holds for groups and for keys.
const maxIdle = 4096

// targets holds all targets. The deliverer's lock guards it.
type targets struct {
	bySubject map[string]*target
	byKey     map[string]*turns // the turns of the buckets of keys, by bucket
	limits    Limits
	counts    *Counts
	pacer     string    // the unique name of this deliverer, for the turns that it gives
	start     time.Time // start of the deliverer's clock

	sweepAt     int // the number of targets at which the next sweep removes idle targets
	sweepKeysAt int // the number of keys at which the next sweep removes idle keys
}

// target is the state of one subject.
type target struct {
	subject    string
	unfinished int // number of deliveries that have no result yet
	unsent     int // number of those deliveries that had to wait and are not sent yet
	count      *Count
	group      *group
	snapshot   *snapshot // the snapshot by which the group was chosen

	stream   string    // the stream that acknowledged last
	streamAt time.Time // the time of that acknowledgement

	forbidden time.Time // when the server last refused a publish to the subject

	turns turns // the turns that the target's rate permits
}

func newTargets(limits Limits, counts *Counts) *targets {
	return &targets{
		bySubject: make(map[string]*target), byKey: make(map[string]*turns), limits: limits, counts: counts,
		pacer: rand.Text()[:8], start: time.Now(),
	}
}

// target returns the target of a subject.
func (all *targets) target(subject string) *target {
	t := all.bySubject[subject]
	if t == nil {
		all.sweep()
		_, interval := all.limits.Bucket(subject, "")
		subject = strings.Clone(subject) // the subject may be a part of a message, whose memory must become free
		t = &target{subject: subject, turns: turns{interval: interval}, count: all.counts.count(subject)}
		all.bySubject[subject] = t
	}
	return t
}

// turnsOf returns the turns of a message's key if a rule for keys matches, or else the turns of its target.
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

// sweepKeys removes idle keys when there are many keys.
func (all *targets) sweepKeys() {
	if len(all.byKey) < max(maxIdle, all.sweepKeysAt) {
		return
	}
	elapsed := time.Since(all.start)
	maps.DeleteFunc(all.byKey, func(_ string, ts *turns) bool { return !ts.pending(elapsed) })
	all.sweepKeysAt = 2 * len(all.byKey) // the remaining keys are busy
}

// dropUnsent notes that a waiting delivery to the target is given back.
func (t *target) dropUnsent() {
	t.unfinished--
	t.unsent--
}

// unfinished returns the targets that have deliveries without a result, and for which match returns true.
func (all *targets) unfinished(match func(target string) bool) (open []*target) {
	for subject, t := range all.bySubject {
		if t.unfinished > 0 && match(subject) {
			open = append(open, t)
		}
	}
	return open
}

// sweep removes idle targets when there are many targets.
func (all *targets) sweep() {
	if len(all.bySubject) < max(maxIdle, all.sweepAt) {
		return
	}
	elapsed := time.Since(all.start)
	for subject, t := range all.bySubject {
		if t.unfinished == 0 && !t.turns.pending(elapsed) {
			delete(all.bySubject, subject)
		}
	}
	all.sweepAt = 2 * len(all.bySubject) // the remaining targets are busy: do not search them for each new target
}
