package deliver

import "time"

const (
	// judgeEvery is the interval at which a group without room is judged, by its answers in the last interval. It must be
	// longer than the time until a silence counts as the answer of core subscribers, which is at most 100 ms.
	judgeEvery = 250 * time.Millisecond
	// judgeFirst is the minimum time until a group that answers is judged for the first time, because the first answers
	// of a burst come slowly.
	judgeFirst = 4 * judgeEvery
	// A group is fast if it takes fastRate messages a second, or if it takes fastBytes bytes a second and a whole window
	// of bytes within fastWithin. Any number of messages may wait for a fast group: to give a message back costs two more
	// hops, which on a busy machine would make the group slow. The bytes are those in memory, about 2 KiB for a small
	// message. Without fastBytes, every group would be fast if the window is small.
	fastRate   = 2000
	fastBytes  = 8 << 20
	fastWithin = 4 * time.Second
	// drainWithin is the time within which a group that is not fast must be able to take its waiting messages. Messages
	// that would take longer are given back.
	drainWithin = 3 * time.Second
	// A group that is not fast may have at most 1/slowShare of the window waiting and outstanding.
	slowShare = 4
	// pressureMemory is the time for which the judgement of a group is kept, from the time at which the group last had no
	// room.
	pressureMemory = time.Minute
	// A delivery that is given back comes again when its group should have room. If the group is silent, the delivery
	// comes again after twice the time since the group's last answer, but at the earliest after minStall and at the latest
	// after maxStall.
	minStall = time.Second
	maxStall = 30 * time.Second
)

// pressure is the judgement of a group that had no room, by the answers in successive slices of time.
type pressure struct {
	sliceStart            time.Time // start of the present slice
	answers, answersBytes int       // the number of answers, and their bytes, in the present slice
	rate, rateBytes       float64   // answers, and their bytes, a second
	judged                bool      // the rates are valid: a slice has been measured
	quick                 bool      // the group has the larger share: see measure, and quickShare
	lastAnswer            time.Time // time of the group's last answer; before the first answer, the start of the pressure
	nextRetry             time.Time // the time at which the delivery that was given back last should come again
}

// noteFull notes that a group has no room. From then on, the group is judged. The window is never judged.
func (all *groups) noteFull(g *group) {
	now := time.Now()
	g.markFull(now)
	if g.pressure != nil || g == all.window {
		return
	}
	g.pressure = &pressure{sliceStart: now, lastAnswer: now}
	if all.pressed = append(all.pressed, g); len(all.pressed) == 1 {
		select {
		case all.crowded <- struct{}{}:
		default:
		}
	}
}

// markFull notes the time at which a group had no room, for the group and its parents.
func (g *group) markFull(now time.Time) {
	for ; g != nil; g = g.parent {
		g.lastFull = now
	}
}

// slow reports whether a delivery would wait too long in one of its groups, and returns the time at which the delivery
// should come again.
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

// answered counts an answer of a target for the target's groups.
func (all *groups) answered(dl *delivery, now time.Time) {
	for g := dl.group; g != nil; g = g.parent {
		if p := g.pressure; p != nil {
			p.answers++
			p.answersBytes += dl.Size
			p.lastAnswer = now
		}
	}
}

// stalledDelivery is a delivery that is given back as Stalled, with the time at which it should come again.
type stalledDelivery struct {
	*delivery
	retryAt time.Time
}

// judge measures the groups under pressure. It removes and returns the waiting deliveries whose groups will not have
// room soon, and reports whether any group is still under pressure.
func (all *groups) judge(now time.Time) (returned []stalledDelivery, more bool) {
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
				returned = append(returned, stalledDelivery{dl, g.retryAt(now)})
				all.remove(dl)
			}
		}
	}
	return returned, len(all.pressed) > 0
}

// measure ends a slice of time, if the slice was long enough. HadRoom is true if the group has room at its end. Then
// the group took all its messages in the slice, and could perhaps take more. So the slice counts only if its rate is
// higher than the rate measured before. One slice is enough to make a group quick. A quick group stays quick while it
// answers and has room. WindowBytes is the maximum number of outstanding bytes of all groups.
func (p *pressure) measure(now time.Time, hadRoom bool, windowBytes int) {
	elapsed := now.Sub(p.sliceStart)
	if elapsed < judgeEvery {
		return
	}
	rate, bytes := float64(p.answers)/elapsed.Seconds(), float64(p.answersBytes)/elapsed.Seconds()
	p.quick = fast(rate, bytes, windowBytes) || p.quick && hadRoom && p.answers > 0
	if !p.judged && p.answers > 0 && elapsed < judgeFirst {
		return
	}
	switch {
	case hadRoom:
		rate, bytes = max(p.rate, rate), max(p.rateBytes, bytes)
	case p.judged:
		rate, bytes = (3*p.rate+rate)/4, (3*p.rateBytes+bytes)/4
	}
	p.rate, p.rateBytes, p.judged = rate, bytes, true
	p.sliceStart, p.answers, p.answersBytes = now, 0, 0
}

// eased reports whether the pressure of a group can be forgotten: the first burst ended before the group was judged, or
// the group has had room for pressureMemory. If the pressure of a slow group were forgotten as soon as the group has
// room, messages for the group would fill their lane again.
func (g *group) eased(now time.Time) bool {
	p := g.pressure
	return g.hasRoom() && (!p.judged && now.Sub(p.sliceStart) >= judgeFirst || now.Sub(g.lastFull) >= pressureMemory)
}

// fast reports whether a group with these rates, in messages and bytes a second, is fast.
func fast(rate, bytes float64, windowBytes int) bool {
	return rate >= fastRate || bytes >= max(fastBytes, float64(windowBytes)/fastWithin.Seconds())
}

// exceeds reports whether so many messages or bytes, waiting and outstanding together, are more than the group may
// have.
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

// tooSlow reports whether a delivery would have to wait, and the group will not have room for the delivery soon.
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

// retryAt returns the time at which the next delivery that is given back should come again. Deliveries come again one
// by one, at the rate of the group.
func (g *group) retryAt(now time.Time) time.Time {
	p := g.pressure
	if p.rate < 1 {
		return now.Add(min(max(2*now.Sub(p.lastAnswer), minStall), maxStall))
	}
	interval := time.Duration(float64(time.Second) / p.rate)
	earliest := now.Add(min(time.Duration(g.outstanding+len(g.waiting))*interval, maxStall))
	if p.nextRetry.Before(earliest) {
		p.nextRetry = earliest
	}
	if p.nextRetry = p.nextRetry.Add(interval); p.nextRetry.After(now.Add(maxStall)) {
		p.nextRetry = now.Add(maxStall)
	}
	return p.nextRetry
}
