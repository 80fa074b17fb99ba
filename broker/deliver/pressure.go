package deliver

import "time"

const (
	// judgeEvery is the interval at which a group without room is judged, by its answers in the last interval. It is
	// longer than the time in which silence becomes the answer of core subscribers, a tenth of a second.
	judgeEvery = 250 * time.Millisecond
	// judgeFirst is the time before a group that answers is judged for the first time: the first answers of a burst come
	// slowly.
	judgeFirst = 4 * judgeEvery
	// A group is fast if it takes fastRate messages a second, or fastBytes a second and a whole window of bytes within
	// fastWithin. Any number of messages may wait for a fast group. To give its messages back would cost two more hops for
	// each, which on a busy machine would make the group slow. The bytes are bytes of memory, some 2 KiB for a small
	// message; fastBytes keeps a small window from making every group fast.
	fastRate   = 2000
	fastBytes  = 8 << 20
	fastWithin = 4 * time.Second
	// drainWithin is the time within which a group that is not fast must be able to take its waiting messages. The others
	// are given back.
	drainWithin = 3 * time.Second
	// slowShare bounds the messages of a group that is not fast, waiting and outstanding: one part in this many of the
	// window.
	slowShare = 4
	// pressureMemory is how long a group's judgement is kept after the group last had no room.
	pressureMemory = time.Minute
	// A delivery that is given back comes again when its group should have room. If the group answers nothing, the
	// delivery comes again after twice the time since its last answer, within these bounds.
	minStall = time.Second
	maxStall = 30 * time.Second
)

// pressure is the judgement of a group without room. Its answers are counted in slices of time.
type pressure struct {
	since                 time.Time // when the present slice began
	answers, answersBytes int       // in this slice
	rate, rateBytes       float64   // answers, and their bytes, a second
	judged                bool      // a slice has been measured
	quick                 bool      // it was fast in the last slice in which it had no room; see quickShare
	answered              time.Time // when the group last answered; at first, when it had no room
	next                  time.Time // when the group should have taken all messages that were given back so far
}

// press notes that a group has no room. The window itself is never judged.
func (all *groups) press(g *group) {
	now := time.Now()
	g.fullAt(now)
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

// fullAt notes when a group, and so its parents, had no room.
func (g *group) fullAt(now time.Time) {
	for ; g != nil; g = g.parent {
		g.full = now
	}
}

// slow reports whether a delivery would wait too long in one of its groups, and when it should come again.
func (all *groups) slow(dl *delivery) (turn time.Time, slow bool) {
	for g := dl.group; g != nil; g = g.parent {
		if g.tooSlow(dl) {
			now := time.Now()
			g.fullAt(now)
			return g.turn(now), true
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
	turn time.Time
}

// judge measures the groups under pressure, and takes out the deliveries that they will not take soon. It reports
// whether any group is still under pressure.
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
				back = append(back, givenBack{dl, g.turn(now)})
				all.leave(dl)
			}
		}
	}
	return back, len(all.pressed) > 0
}

// measure ends a slice of time. A group that had room took all messages it was given, perhaps fewer than it can take.
// So such a slice counts only if its rate is higher than before. One slice is enough to make a group quick.
func (p *pressure) measure(now time.Time, room bool, window int) {
	took := now.Sub(p.since)
	if took < judgeEvery {
		return
	}
	rate, bytes := float64(p.answers)/took.Seconds(), float64(p.answersBytes)/took.Seconds()
	p.quick = fast(rate, bytes, window) || p.quick && room && p.answers > 0
	if !p.judged && p.answers > 0 && took < judgeFirst {
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

// eased reports whether the pressure of a group can be forgotten: its first burst has ended before it was judged, or it
// has had room for pressureMemory. If a slow group were forgotten as soon as it has room, it would fill its lane again.
func (g *group) eased(now time.Time) bool {
	p := g.pressure
	return g.hasRoom() && (!p.judged && now.Sub(p.since) >= judgeFirst || now.Sub(g.full) >= pressureMemory)
}

// fast reports whether a group with these rates, in messages and bytes a second, is fast.
func fast(rate, bytes float64, window int) bool {
	return rate >= fastRate || bytes >= max(fastBytes, float64(window)/fastWithin.Seconds())
}

// over reports whether so many messages or bytes, waiting and outstanding, are more than the group may have.
func (g *group) over(messages, bytes int) bool {
	p, w := g.pressure, g.window()
	if fast(p.rate, p.rateBytes, w.maxBytes) {
		return false
	}
	within := drainWithin.Seconds()
	most, maxBytes := g.room()
	return messages > min(most+int(p.rate*within), w.most/slowShare) ||
		bytes > min(maxBytes+int(p.rateBytes*within), w.maxBytes/slowShare)
}

// tooSlow reports whether a delivery would have to wait, and the group will not take it soon.
func (g *group) tooSlow(dl *delivery) bool {
	if g.pressure == nil || !g.pressure.judged || len(g.waiting) == 0 && g.fits(dl) {
		return false
	}
	return g.over(g.past+len(g.waiting)+1, g.pastBytes+g.waitingBytes+dl.Size)
}

// excess removes and returns the waiting deliveries above the group's bound: the last ones, in order.
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

// turn returns when the next delivery that is given back should come again. Each gets a turn of its own.
func (g *group) turn(now time.Time) time.Time {
	p := g.pressure
	if p.rate < 1 {
		return now.Add(min(max(2*now.Sub(p.answered), minStall), maxStall))
	}
	each := time.Duration(float64(time.Second) / p.rate)
	soonest := now.Add(min(time.Duration(g.past+len(g.waiting))*each, maxStall))
	if p.next.Before(soonest) {
		p.next = soonest
	}
	if p.next = p.next.Add(each); p.next.After(now.Add(maxStall)) {
		p.next = now.Add(maxStall)
	}
	return p.next
}
