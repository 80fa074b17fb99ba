package deliver

import (
	"time"

	"delaybroker/broker/message"
)

const (
	window   = 32 << 10   // deliveries outstanding
	share    = window / 8 // of these, to one target
	remember = 4096       // idle targets whose evidence is kept
	// stallAfter is how long a target may say nothing, with its whole share outstanding, before more is not even kept
	// waiting for it: it would fill the memory of its lane, and the lane would stop for everybody.
	stallAfter = time.Second
)

// target is what the deliverer keeps for one subject. It is guarded by the deliverer's lock.
type target struct {
	subject string
	sent    int         // outstanding
	waiting []*delivery // not sent for want of room
	inTurn  bool

	answered time.Time // when it last did, or was first asked
	stream   string    // the stream that acknowledged last
	streamAt time.Time // when it did

	forbidden time.Time // when the server last refused a publish to it

	interval time.Duration // between two messages; zero is no bound
	free     time.Time     // the next turn that nobody has
}

func (d *Deliverer) targetLocked(subject string) *target {
	t := d.targets[subject]
	if t != nil {
		return t
	}
	if len(d.targets) >= max(remember, d.sweepAt) {
		now := time.Now()
		for s, old := range d.targets {
			if old.sent == 0 && len(old.waiting) == 0 && !old.free.After(now) {
				delete(d.targets, s)
			}
		}
		d.sweepAt = 2 * len(d.targets) // those left are busy: not again for each new one
	}
	t = &target{subject: subject, interval: d.Rates.interval(subject)}
	d.targets[subject] = t
	return t
}

func (d *Deliverer) sentLocked(t *target) {
	if t.sent == 0 {
		t.answered = time.Now()
	}
	d.sent++
	t.sent++
}

// stalledLocked reports whether the target of a message holds its whole share and has answered nothing for some time.
func (d *Deliverer) stalledLocked(t *target, m Message) bool {
	return t.sent >= share && time.Since(t.answered) >= d.patience(m)
}

// patience is how long the target of a message may say nothing. A service may be slow and well.
func (d *Deliverer) patience(m Message) time.Duration {
	if d.Modes.of(m.Mode, m.Target) == message.Reply {
		return max(stallAfter, d.ReplyTimeout)
	}
	return stallAfter
}

// queueLocked puts a target into the turn if something of it waits and it has a share left.
func (d *Deliverer) queueLocked(t *target) {
	if !t.inTurn && len(t.waiting) > 0 && t.sent < share {
		t.inTurn = true
		d.turn = append(d.turn, t)
	}
}

// pump sends what waits while there is room. One goroutine pumps at a time; another that has made room meanwhile leaves
// it to that one.
func (d *Deliverer) pump() {
	d.mu.Lock()
	if d.pumping {
		d.mu.Unlock()
		return
	}
	d.pumping = true
	for len(d.turn) > 0 && d.sent < window {
		t := d.turn[0]
		d.turn = d.turn[1:]
		t.inTurn = false
		if len(t.waiting) == 0 {
			continue // drained
		}
		dl := t.waiting[0]
		t.waiting[0] = nil
		t.waiting = t.waiting[1:]
		d.sentLocked(t)
		d.queueLocked(t)
		d.mu.Unlock()
		d.send(dl)
		d.mu.Lock()
	}
	d.pumping = false
	d.mu.Unlock()
}
