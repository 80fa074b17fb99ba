package deliver

import "time"

// remember is how many idle targets, and groups of them, are kept for the sake of what is known of them.
const remember = 4096

// target is what the deliverer keeps for one subject. It is guarded by the deliverer's lock.
type target struct {
	subject string
	open    int // deliveries that have no result yet
	unsent  int // those of them that had to wait, and are not yet sent
	group   *group
	picture *picture // by which it was put there

	stream   string    // the stream that acknowledged last
	streamAt time.Time // when it did

	forbidden time.Time // when the server last refused a publish to it

	interval time.Duration // between two messages; zero is no bound
	free     time.Time     // the next turn that nobody has
}

func (d *Deliverer) targetLocked(subject string) *target {
	t := d.targets[subject]
	if t == nil {
		d.sweepTargetsLocked()
		t = &target{subject: subject, interval: d.Rates.interval(subject)}
		d.targets[subject] = t
	}
	// In another group it would overtake what waits in this one.
	if p := d.streams.now.Load(); t.group == nil || (t.picture != p || t.group.forgotten) && t.unsent == 0 {
		t.group, t.picture = d.groupOfLocked(subject, p), p
	}
	return t
}

func (d *Deliverer) sweepTargetsLocked() {
	if len(d.targets) < max(remember, d.sweepTargets) {
		return
	}
	now := time.Now()
	for s, old := range d.targets {
		if old.open == 0 && !old.free.After(now) {
			delete(d.targets, s)
		}
	}
	d.sweepTargets = 2 * len(d.targets) // those left are busy: not again for each new one
}
