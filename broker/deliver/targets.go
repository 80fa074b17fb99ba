package deliver

import (
	"crypto/rand"
	"maps"
	"strings"
	"time"
)

// minSweep is the minimum number of values in a map for a sweep.
const minSweep = 4096

// targets holds all targets. The deliverer's lock guards it.
type targets struct {
	bySubject map[string]*target
	byKey     map[string]*turns // by bucket; for buckets with a Delay-Rate-Key
	limits    Limits
	counts    *Counts
	pacer     string    // a random name of this deliverer, for the names of turns
	start     time.Time // start of the deliverer's clock

	sweepAt     int // the minimum number of targets for the next sweep
	sweepKeysAt int // the minimum number of values in byKey for the next sweep
}

// target is the state of one subject.
type target struct {
	subject    string
	deliveries int // number of deliveries that have no result yet
	count      *Count
	group      *group
	snapshot   *snapshot // the snapshot by which the group was chosen

	unsentDeliveries int // number of the deliveries that had to wait and are not sent yet

	stream      string    // the stream of the most recent acknowledgement
	streamAt    time.Time // the time of that acknowledgement
	forbiddenAt time.Time // when the server last refused a publish to the subject

	turns turns // the turns that the target's rate permits
}

func newTargets(limits Limits, counts *Counts) *targets {
	return &targets{
		bySubject: make(map[string]*target), byKey: make(map[string]*turns), limits: limits, counts: counts,
		pacer: rand.Text()[:8], start: time.Now(),
	}
}

func (ts *targets) target(subject string) *target {
	t := ts.bySubject[subject]
	if t == nil {
		sweep(ts.bySubject, &ts.sweepAt, func(t *target) bool {
			return t.deliveries == 0 && !t.turns.pending(time.Since(ts.start))
		})
		_, interval := ts.limits.Bucket(subject, "")
		subject = strings.Clone(subject) // the subject may be a part of a message, whose memory must become free
		t = &target{subject: subject, turns: turns{interval: interval}, count: ts.counts.count(subject)}
		ts.bySubject[subject] = t
	}
	return t
}

// turnsOf returns the turns of a message's bucket: see Limits.
func (ts *targets) turnsOf(t *target, key string) *turns {
	bucket, interval := ts.limits.Bucket(t.subject, key)
	if bucket == t.subject {
		return &t.turns
	}
	b := ts.byKey[bucket]
	if b == nil {
		sweep(ts.byKey, &ts.sweepKeysAt, func(b *turns) bool { return !b.pending(time.Since(ts.start)) })
		b = &turns{interval: interval}
		ts.byKey[bucket] = b
	}
	return b
}

// sweep removes the idle values of a map, if the map has at least minSweep and at least sweepAt values. Then it sets
// sweepAt to twice the number of busy values that remain, so that sweeps stay rare while most values are busy.
func sweep[K comparable, V any](m map[K]V, sweepAt *int, idle func(V) bool) {
	if len(m) < max(minSweep, *sweepAt) {
		return
	}
	maps.DeleteFunc(m, func(_ K, v V) bool { return idle(v) })
	*sweepAt = 2 * len(m)
}

func (t *target) dropUnsent() {
	t.deliveries--
	t.unsentDeliveries--
}

// busyTargets returns the targets that have deliveries without a result, and for which match returns true.
func (ts *targets) busyTargets(match func(target string) bool) (busy []*target) {
	for subject, t := range ts.bySubject {
		if t.deliveries > 0 && match(subject) {
			busy = append(busy, t)
		}
	}
	return busy
}
