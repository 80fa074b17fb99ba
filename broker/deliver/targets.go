package deliver

import (
	"crypto/rand"
	"maps"
	"strings"
	"time"
)

// maxIdle is the number of targets, of groups or of keys from which on a sweep removes idle ones.
const maxIdle = 4096

// targets holds all targets. The deliverer's lock guards it.
type targets struct {
	bySubject map[string]*target
	byKey     map[string]*turns // the turns of the buckets of keys, by bucket
	limits    Limits
	counts    *Counts
	pacer     string    // the unique name of this deliverer, for the turns that it gives
	start     time.Time // start of the deliverer's clock

	sweepAt     int // for sweep of bySubject
	sweepKeysAt int // for sweep of byKey
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
		sweep(all.bySubject, &all.sweepAt, func(t *target) bool {
			return t.unfinished == 0 && !t.turns.pending(time.Since(all.start))
		})
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
		sweep(all.byKey, &all.sweepKeysAt, func(ts *turns) bool { return !ts.pending(time.Since(all.start)) })
		ts = &turns{interval: interval}
		all.byKey[bucket] = ts
	}
	return ts
}

// sweep removes the idle values of a map that has many values: at least maxIdle, and at least sweepAt. Then it sets
// sweepAt to twice the remaining values. These are busy, so the next new value must not cause another visit to them.
func sweep[K comparable, V any](m map[K]V, sweepAt *int, idle func(V) bool) {
	if len(m) < max(maxIdle, *sweepAt) {
		return
	}
	maps.DeleteFunc(m, func(_ K, v V) bool { return idle(v) })
	*sweepAt = 2 * len(m)
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
