package deliver

import (
	"slices"
	"time"
)

const (
	// judgeInterval is the interval at which a group under pressure is judged. It must be longer than the time until a
	// silence counts as a delivery, which is usually less than 100 ms.
	judgeInterval = 250 * time.Millisecond
	// firstJudgement is the minimum length of the first slice of a group that answers. The first answers of a burst come
	// slowly, so a shorter slice would show too low a rate.
	firstJudgement = 4 * judgeInterval
	// A group is fast if it takes fastRate messages a second, or if it takes fastBytes bytes a second and a whole window
	// of bytes within fastPeriod. Any number of messages may wait for a fast group: a message that is given back costs two
	// more hops, which on a busy machine would make the group slow. The bytes of a message are its Size, about 2 KiB for a
	// small message. Without fastBytes, every group would be fast if the window is small.
	fastRate   = 2000
	fastBytes  = 8 << 20
	fastPeriod = 4 * time.Second
	// maxQueueTime is the maximum expected time of a message in the queue of a group that is not fast. Messages that would
	// wait longer are given back.
	maxQueueTime = 3 * time.Second
	// A group that is not fast may have at most 1/slowDivisor of the window, waiting and outstanding together.
	slowDivisor = 4
	// pressureMemory is the time for which the judgement of a group is kept, counted from the time at which the group last
	// had no room.
	pressureMemory = time.Minute
	// A stalled delivery comes again when its group should have room, but at the latest after maxStall. If the group is
	// silent, the delivery comes again after twice the time since the group's last answer, but at the earliest after
	// minStall.
	minStall = time.Second
	maxStall = 30 * time.Second
)

// pressure is the judgement of a group that had no room. Method measure judges by the answers in each slice of time.
type pressure struct {
	sliceStart            time.Time // start of the present slice
	answers, answersBytes int       // the messages of the present slice for which countsAsAnswer is true, and their bytes
	rate, rateBytes       float64   // averages: the answered messages a second, and their bytes a second
	judged                bool      // the rates are valid: a slice has been measured
	largeShare            bool      // the group has the large share: see measure, and largeDivisor
	lastAnswer            time.Time // time of the group's last answer; before the first answer, the start of the pressure
	nextRetry             time.Time // the most recent result of retryAt for a group that is not silent
}

// noteFull notes that a group has no room, and puts the group under pressure. The window is never under pressure.
func (gs *groups) noteFull(g *group) {
	now := time.Now()
	g.markFull(now)
	if g.pressure != nil || g == gs.window {
		return
	}
	g.pressure = &pressure{sliceStart: now, lastAnswer: now}
	if gs.pressureList = append(gs.pressureList, g); len(gs.pressureList) == 1 {
		signal(gs.pressureSignal)
	}
}

func (g *group) markFull(now time.Time) {
	for ; g != nil; g = g.parent {
		g.lastFull = now
	}
}

// stallEnd reports whether a delivery would wait too long in one of its groups. If so, it returns the time at which the
// delivery should come again.
func (gs *groups) stallEnd(dl *delivery) (retryAt time.Time, stalled bool) {
	for g := dl.first(); g != nil; g = dl.after(g) {
		if g.stalls(dl) {
			now := time.Now()
			g.markFull(now)
			return g.retryAt(now), true
		}
	}
	return time.Time{}, false
}

func (gs *groups) countAnswer(dl *delivery, now time.Time) {
	for g := dl.first(); g != nil; g = dl.after(g) {
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
func (gs *groups) judge(now time.Time) (returned []stalledDelivery, more bool) {
	list := gs.pressureList
	gs.pressureList = nil
	for _, g := range list {
		if g.pressureEnded(now) {
			g.pressure = nil
			continue
		}
		g.pressure.measure(now, g.hasRoom(), gs.window.maxBytes)
		gs.pressureList = append(gs.pressureList, g)
		// After a removal, deliveries of the groups below g may wait at g, and exceed its bound again.
		for excess := g.takeExcess(); len(excess) > 0; excess = g.takeExcess() {
			for _, dl := range excess {
				returned = append(returned, stalledDelivery{dl, g.retryAt(now)})
				gs.remove(dl)
			}
		}
	}
	return returned, len(gs.pressureList) > 0
}

// measure updates the judgement, and ends the present slice of time if the slice was long enough. If the group has room
// at the end of a slice, the group took all its messages, and could perhaps take more. So the slice counts only if its
// rate is higher than the previous rate. After one fast slice, a group has the large share, and keeps it while the
// group answers and has room. WindowBytes is the maximum number of outstanding bytes of all groups.
func (p *pressure) measure(now time.Time, hasRoom bool, windowBytes int) {
	elapsed := now.Sub(p.sliceStart)
	if elapsed < judgeInterval {
		return
	}
	rate, bytes := float64(p.answers)/elapsed.Seconds(), float64(p.answersBytes)/elapsed.Seconds()
	p.largeShare = isFast(rate, bytes, windowBytes) || p.largeShare && hasRoom && p.answers > 0
	if !p.judged && p.answers > 0 && elapsed < firstJudgement {
		return
	}
	switch {
	case hasRoom:
		rate, bytes = max(p.rate, rate), max(p.rateBytes, bytes)
	case p.judged:
		rate, bytes = (3*p.rate+rate)/4, (3*p.rateBytes+bytes)/4
	}
	p.rate, p.rateBytes, p.judged = rate, bytes, true
	p.sliceStart, p.answers, p.answersBytes = now, 0, 0
}

// pressureEnded reports whether the pressure of a group can be forgotten: the first burst ended before the group was
// judged, or the group has had room for pressureMemory. If the pressure of a slow group were forgotten as soon as the
// group has room, the next messages for the group would fill their lane again.
func (g *group) pressureEnded(now time.Time) bool {
	p := g.pressure
	return g.hasRoom() && (!p.judged && now.Sub(p.sliceStart) >= firstJudgement || now.Sub(g.lastFull) >= pressureMemory)
}

func isFast(rate, bytes float64, windowBytes int) bool {
	return rate >= fastRate || bytes >= max(fastBytes, float64(windowBytes)/fastPeriod.Seconds())
}

// exceeds reports whether these numbers of messages and bytes, waiting and outstanding together, are above the group's
// bound. A fast group has no bound.
func (g *group) exceeds(messages, bytes int) bool {
	p, w := g.pressure, g.window()
	if isFast(p.rate, p.rateBytes, w.maxBytes) {
		return false
	}
	seconds := maxQueueTime.Seconds()
	maxMessages, maxBytes := g.room()
	return messages > min(maxMessages+int(p.rate*seconds), w.maxMessages/slowDivisor) ||
		bytes > min(maxBytes+int(p.rateBytes*seconds), w.maxBytes/slowDivisor)
}

// stalls reports whether a delivery would have to wait, and would exceed the group's bound.
func (g *group) stalls(dl *delivery) bool {
	if g.pressure == nil || !g.pressure.judged || len(g.queue) == 0 && g.fits(dl) {
		return false
	}
	return g.exceeds(g.outstanding+len(g.queue)+1, g.outstandingBytes+g.queueBytes+dl.Size)
}

// takeExcess removes and returns the deliveries at the end of the queue that exceed the group's bound.
func (g *group) takeExcess() []*delivery {
	if !g.pressure.judged {
		return nil
	}
	n := len(g.queue)
	for n > 0 && g.exceeds(g.outstanding+n, g.outstandingBytes+g.queueBytes) {
		n--
		g.queueBytes -= g.queue[n].Size
	}
	excess := slices.Clone(g.queue[n:])
	clear(g.queue[n:])
	g.queue = g.queue[:n]
	return excess
}

// retryAt returns the time at which the next delivery to give back should come again. Deliveries come again one by one,
// at the rate of the group. If the group is silent, or they would come later than after maxStall, they come together.
func (g *group) retryAt(now time.Time) time.Time {
	p := g.pressure
	if p.rate < 1 {
		return now.Add(min(max(2*now.Sub(p.lastAnswer), minStall), maxStall))
	}
	interval := time.Duration(float64(time.Second) / p.rate)
	earliest := now.Add(min(time.Duration(g.outstanding+len(g.queue))*interval, maxStall))
	if p.nextRetry.Before(earliest) {
		p.nextRetry = earliest
	}
	if p.nextRetry = p.nextRetry.Add(interval); p.nextRetry.After(now.Add(maxStall)) {
		p.nextRetry = now.Add(maxStall)
	}
	return p.nextRetry
}
