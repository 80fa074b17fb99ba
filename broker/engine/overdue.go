package engine

import "delaybroker/broker/leader"

// overdueSince returns the time since which a message is overdue, given its next step. Ok is false if the message is
// not overdue. A message in a retry lane is overdue from its due time on. A message that waits because of its target's
// rate is overdue from its reserved send time on. A message that waited because its target was paused is overdue from
// the resumption on. A message that only a newer broker can read is overdue from the end of the lane's delay on.
func overdueSince(p plan, f *flight, s step) (since leader.Time, ok bool) {
	if f.newer() { // its due time cannot be read
		return f.storedAt().Add(p.delay), true
	}
	since, again := p.kind.leaves(p, f)
	switch {
	case s.kind == hold && (!again || f.request.Paced != ""):
		return leader.Time{}, false
	case f.request.Due.IsZero(): // the message could not be parsed
		return f.storedAt(), true
	}
	if p.resumed.After(since) {
		since = p.resumed
	}
	return since, true
}
