package deliver

import "time"

const (
	// judgeEvery is the interval at which a group without room is judged by its answers in the last interval. It is
	// longer than the time until a silence counts as the answer of core subscribers, at most a tenth of a second.
	judgeEvery = 250 * time.Millisecond
	// judgeFirst is the minimum time until a group that answers is judged for the first time, because the first answers
	// of a burst come slowly.
	judgeFirst = 4 * judgeEvery
	// A group is fast if it takes fastRate messages a second. It is also fast if it takes fastBytes a second, and a whole
	// window of bytes within fastWithin. Any number of messages may wait for a fast group: to give a message back costs
	// two more hops, which on a busy machine would make the group slow. The bytes are those in memory, about 2 KiB for a
	// small message. Without fastBytes, every group would be fast if the window is small.
	fastRate   = 2000
	fastBytes  = 8 << 20
	fastWithin = 4 * time.Second
	// drainWithin is the time within which a group that is not fast must be able to take its waiting messages. Messages
	// that would take longer are given back.
	drainWithin = 3 * time.Second
	// slowShare bounds the waiting and outstanding messages of a group that is not fast: to 1/slowShare of the window.
	slowShare = 4
	// pressureMemory is the time for which a group's judgement is kept after the group last had no room.
	pressureMemory = time.Minute
	// A delivery that is given back comes again when its group should have room. If the group does not answer, the
	// delivery comes again after twice the time since the group's last answer, but at least minStall and at most maxStall.
	minStall = time.Second
	maxStall = 30 * time.Second
)

// pressure is the judgement of a group without room, by the answers in each slice of time.
type pressure struct {
	since                 time.Time // start of the present slice
	answers, answersBytes int       // the number of answers, and their bytes, in the present slice
	rate, rateBytes       float64   // answers, and their bytes, a second
	judged                bool      // a slice has been measured
	quick                 bool      // the group has the larger share: see measure, and quickShare
	answered              time.Time // time of the group's last answer; before it, the start of the pressure
	next                  time.Time // when the group should have taken all messages that were given back
}

// press notes that a group has no room. The window itself is never judged.
func (all *groups) press(g *group) {
	now := time.Now()
	g.markFull(now)
	if g.pressure != nil || g == all.window {
		return
	}
	g.pressure = &pressure{since: now, answered: now}
	if all.pressed = append(all.pressed, g); len(all.pressed) == 1 {
		select {
		case all.crowded <- struct{}{}:
		default:
		}
	}
}

// markFull notes that a group had no room, also for its parents.
func (g *group) markFull(now time.Time) {
	for ; g != nil; g = g.parent {
		g.lastFull = now
	}
}

// slow reports whether a delivery would wait too long in one of its groups, and returns when it should come again.
func (all *groups) slow(dl *delivery) (retryAt time.Time, slow bool) {
	for g := dl.group; g != nil; g = g.parent {
		if g.tooSlow(dl) {
			now := time.Now()
			g.markFull(now)
			return g.retryAt(now), true
		}
	}
	return time.Time{}, false
}

// answered counts an answer of a target for its groups.
func (all *groups) answered(dl *delivery, now time.Time) {
	for g := dl.group; g != nil; g = g.parent {
		if p := g.pressure; p != nil {
			p.answers++
			p.answersBytes += dl.Size
			p.answered = now
		}
	}
}

// givenBack is a delivery that is given back, with the time at which it should come again.
type givenBack struct {
	*delivery
	retryAt time.Time
}

// judge measures the groups under pressure, and removes and returns the deliveries for which their groups will not have
// room soon. It reports whether any group is still under pressure.
func (all *groups) judge(now time.Time) (back []givenBack, more bool) {
	pressed := all.pressed
	all.pressed = nil
	for _, g := range pressed {
		if g.eased(now) {
			g.pressure = nil
			continue
		}
		g.pressure.measure(now, g.hasRoom(), all.window.maxBytes)
		all.pressed = append(all.pressed, g)
		for excess := g.excess(); len(excess) > 0; excess = g.excess() {
			for _, dl := range excess {
				back = append(back, givenBack{dl, g.retryAt(now)})
				all.leave(dl)
			}
		}
	}
	return back, len(all.pressed) > 0
}

// measure ends a slice of time. A group that had room took all its messages, perhaps fewer than it can take. So such a
// slice counts only if its rate is higher than before. One slice is enough to make a group quick. A quick group stays
// quick while it answers and has room.
func (p *pressure) measure(now time.Time, room bool, window int) {
	elapsed := now.Sub(p.since)
	if elapsed < judgeEvery {
		return
	}
	rate, bytes := float64(p.answers)/elapsed.Seconds(), float64(p.answersBytes)/elapsed.Seconds()
	p.quick = fast(rate, bytes, window) || p.quick && room && p.answers > 0
	if !p.judged && p.answers > 0 && elapsed < judgeFirst {
		return
	}
	switch {
	case room:
		rate, bytes = max(p.rate, rate), max(p.rateBytes, bytes)
	case p.judged:
		rate, bytes = (3*p.rate+rate)/4, (3*p.rateBytes+bytes)/4
	}
	p.rate, p.rateBytes, p.judged = rate, bytes, true
	p.since, p.answers, p.answersBytes = now, 0, 0
}

// eased reports whether the pressure of a group can be forgotten: its first burst ended before the group was judged, or
// the group has had room for pressureMemory. If the pressure of a slow group were forgotten as soon as the group has
// room, the group would fill its lane again.
func (g *group) eased(now time.Time) bool {
	p := g.pressure
	return g.hasRoom() && (!p.judged && now.Sub(p.since) >= judgeFirst || now.Sub(g.lastFull) >= pressureMemory)
}

// fast reports whether a group with these rates, in messages and bytes a second, is fast.
func fast(rate, bytes float64, window int) bool {
	return rate >= fastRate || bytes >= max(fastBytes, float64(window)/fastWithin.Seconds())
}

// exceeds reports whether the given messages or bytes, waiting and outstanding, are more than the group may have.
func (g *group) exceeds(messages, bytes int) bool {
	p, w := g.pressure, g.window()
	if fast(p.rate, p.rateBytes, w.maxBytes) {
		return false
	}
	within := drainWithin.Seconds()
	maxMessages, maxBytes := g.room()
	return messages > min(maxMessages+int(p.rate*within), w.maxMessages/slowShare) ||
		bytes > min(maxBytes+int(p.rateBytes*within), w.maxBytes/slowShare)
}

// tooSlow reports whether a delivery would have to wait, and the group will not have room for it soon.
func (g *group) tooSlow(dl *delivery) bool {
	if g.pressure == nil || !g.pressure.judged || len(g.waiting) == 0 && g.fits(dl) {
		return false
	}
	return g.exceeds(g.outstanding+len(g.waiting)+1, g.outstandingBytes+g.waitingBytes+dl.Size)
}

// excess removes and returns the waiting deliveries that exceed the group's bound, in order. They are the last in the
// queue.
func (g *group) excess() []*delivery {
	if !g.pressure.judged {
		return nil
	}
	n := len(g.waiting)
	for n > 0 && g.exceeds(g.outstanding+n, g.outstandingBytes+g.waitingBytes) {
		n--
		g.waitingBytes -= g.waiting[n].Size
	}
	excess := append([]*delivery(nil), g.waiting[n:]...)
	clear(g.waiting[n:])
	g.waiting = g.waiting[:n]
	return excess
}

// retryAt returns when the next delivery that is given back should come again. Deliveries come again one by one, at the
// rate of the group.
func (g *group) retryAt(now time.Time) time.Time {
	p := g.pressure
	if p.rate < 1 {
		return now.Add(min(max(2*now.Sub(p.answered), minStall), maxStall))
	}
	interval := time.Duration(float64(time.Second) / p.rate)
	earliest := now.Add(min(time.Duration(g.outstanding+len(g.waiting))*interval, maxStall))
	if p.next.Before(earliest) {
		p.next = earliest
	}
	if p.next = p.next.Add(interval); p.next.After(now.Add(maxStall)) {
		p.next = now.Add(maxStall)
	}
	return p.next
}
