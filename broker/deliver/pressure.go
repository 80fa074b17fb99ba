package deliver

import (
	"context"
	"time"
)

const (
	// judgeEvery is how often a group without room is judged by what it answered since. Core subscribers count as having
	// answered a tenth of a second after they were sent something.
	judgeEvery = 250 * time.Millisecond
	// judgeFirst is after what time one that answers is judged first: the first answers of a burst come slowly.
	judgeFirst = 4 * judgeEvery
	// fastRate, or fastBytes and a window of them within fastWithin, is what a group takes in a second that is fast. It may
	// use all there is: what it were given back would only cost two more hops, and on a busy machine make it slow in earnest.
	// The bytes are of memory, some 4 KiB for a small message. So a small window makes nobody fast.
	fastRate   = 2000
	fastBytes  = 8 << 20
	fastWithin = 4 * time.Second
	// drainWithin is in what time another must be able to take what waits for it. What is more is given back.
	drainWithin = 3 * time.Second
	// slowShare is the part of the window that one may have, waiting and past it, however soon it could take more.
	slowShare = 4
	// pressureMemory is how long a group that had no room is not judged anew.
	pressureMemory = time.Minute
	// What is given back comes again when its group should have room; of one that answers nothing, after twice the time for
	// which it has not.
	leastStall = time.Second
	mostStall  = 30 * time.Second
)

// pressure is what is known of a group that has no room.
type pressure struct {
	since                 time.Time // of the slice of time that is measured
	answers, answersBytes int       // in this slice
	rate, rateBytes       float64   // answers a second
	judged                bool      // a slice has been measured
	answered              time.Time // when it last did, or when it had no room at first
	next                  time.Time // when it has taken what was given back so far
}

// pressLocked notes that a group has no room.
func (d *Deliverer) pressLocked(g *group) {
	now := time.Now()
	g.fullAt(now)
	d.streams.renew() // whose stream is it?
	if g.pressure != nil || g == d.window {
		return
	}
	g.pressure = &pressure{since: now, answered: now}
	if d.pressed = append(d.pressed, g); len(d.pressed) == 1 {
		select {
		case d.press <- struct{}{}:
		default:
		}
	}
}

func (g *group) fullAt(now time.Time) {
	for ; g != nil; g = g.parent {
		g.full = now
	}
}

// slowLocked reports whether a delivery would wait too long in one of its groups, and when it should come again.
func (d *Deliverer) slowLocked(dl *delivery) (turn time.Time, slow bool) {
	for g := dl.group; g != nil; g = g.parent {
		if g.slow(dl) {
			now := time.Now()
			g.fullAt(now)
			return g.turn(now), true
		}
	}
	return time.Time{}, false
}

// answeredLocked counts an answer of a target for its groups.
func (d *Deliverer) answeredLocked(dl *delivery) {
	for g := dl.group; g != nil; g = g.parent {
		if p := g.pressure; p != nil {
			p.answers++
			p.answersBytes += dl.Size
			p.answered = time.Now()
		}
	}
}

// watch judges the groups that have no room until ctx ends; while there are none it sleeps.
func (d *Deliverer) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.press:
		}
		for more := true; more; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(judgeEvery):
				more = d.judge(time.Now())
			}
		}
	}
}

// judge measures the groups that had no room lately, gives back what they will not take soon, and reports whether there
// are any.
func (d *Deliverer) judge(now time.Time) (more bool) {
	type stalled struct {
		dl   *delivery
		turn time.Time
	}
	var back []stalled
	d.mu.Lock()
	all := d.pressed
	d.pressed = nil
	for _, g := range all {
		p := g.pressure
		if g.eased(now) {
			g.pressure = nil
			continue
		}
		p.measure(now, g.hasRoom())
		d.pressed = append(d.pressed, g)
		for excess := g.excess(); len(excess) > 0; excess = g.excess() {
			for _, dl := range excess {
				back = append(back, stalled{dl, g.turn(now)})
				d.leaveLocked(dl)
			}
		}
	}
	more = len(d.pressed) > 0
	d.mu.Unlock()
	for _, s := range back {
		s.dl.done(Result{Outcome: Stalled, Turn: s.turn})
	}
	d.pump()
	return more
}

// measure ends a slice of time. What a group took while it had room says what it was given and not what it can take, so
// that counts only if it is more.
func (p *pressure) measure(now time.Time, room bool) {
	took := now.Sub(p.since).Seconds()
	if now.Sub(p.since) < judgeEvery || !p.judged && p.answers > 0 && now.Sub(p.since) < judgeFirst {
		return
	}
	rate, bytes := float64(p.answers)/took, float64(p.answersBytes)/took
	switch {
	case room:
		rate, bytes = max(p.rate, rate), max(p.rateBytes, bytes)
	case p.judged:
		rate, bytes = (3*p.rate+rate)/4, (3*p.rateBytes+bytes)/4
	}
	p.rate, p.rateBytes, p.judged = rate, bytes, true
	p.since, p.answers, p.answersBytes = now, 0, 0
}

// hasRoom reports whether a group has room again.
func (g *group) hasRoom() bool {
	most, mostBytes := g.room()
	return len(g.waiting) == 0 && g.past <= most/2 && g.pastBytes <= mostBytes/2
}

// eased reports whether what is known of a group is of no use any more: its first burst is over before it was judged, or it
// was not left without room for long. To forget a slow one as soon as it has room were to let it fill its lane again.
func (g *group) eased(now time.Time) bool {
	return g.hasRoom() && (!g.pressure.judged && now.Sub(g.pressure.since) >= judgeFirst || now.Sub(g.full) >= pressureMemory)
}

// over reports whether so much is more than a group may have, waiting and past it.
func (g *group) over(messages, bytes int) bool {
	p, w := g.pressure, g.window()
	if p.rate >= fastRate || p.rateBytes >= max(fastBytes, float64(w.mostBytes)/fastWithin.Seconds()) {
		return false
	}
	within := drainWithin.Seconds()
	most, mostBytes := g.room()
	return messages > min(most+int(p.rate*within), w.most/slowShare) ||
		bytes > min(mostBytes+int(p.rateBytes*within), w.mostBytes/slowShare)
}

// slow reports whether a group would not soon take another delivery that it has no room for.
func (g *group) slow(dl *delivery) bool {
	if g.pressure == nil || !g.pressure.judged || len(g.waiting) == 0 && g.fits(dl) {
		return false
	}
	return g.over(g.past+len(g.waiting)+1, g.pastBytes+g.waitingBytes+dl.Size)
}

// excess takes out what waits and is more than the group may have, the last ones, in order.
func (g *group) excess() []*delivery {
	if !g.pressure.judged {
		return nil
	}
	n := len(g.waiting)
	for n > 0 && g.over(g.past+n, g.pastBytes+g.waitingBytes) {
		n--
		g.waitingBytes -= g.waiting[n].Size
	}
	excess := append([]*delivery(nil), g.waiting[n:]...)
	clear(g.waiting[n:])
	g.waiting = g.waiting[:n]
	return excess
}

// turn is when the next delivery that is given back should come again.
func (g *group) turn(now time.Time) time.Time {
	p := g.pressure
	if p.rate < 1 {
		return now.Add(min(max(2*now.Sub(p.answered), leastStall), mostStall))
	}
	each := time.Duration(float64(time.Second) / p.rate)
	soonest := now.Add(min(time.Duration(g.past+len(g.waiting))*each, mostStall))
	if p.next.Before(soonest) {
		p.next = soonest
	}
	if p.next = p.next.Add(each); p.next.After(now.Add(mostStall)) {
		p.next = now.Add(mostStall)
	}
	return p.next
}
