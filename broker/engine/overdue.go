package engine

import "delaybroker/broker/leader"

// overdueSince returns when a message should have left, given its next step; ok is false while the message is not
// overdue. A message that waits in a retry lane, refused or deferred, is late from its due time on, however often it
// waits. A message that waits because of its target's rate is late from its turn on, and one that waited because its
// target was paused is late from the resumption on. A message that only a newer broker can read is late from the end of
// the lane's delay on.
func overdueSince(p plan, f *flight, s step) (since leader.Time, ok bool) {
	if f.newer() { // its due time cannot be read: it should leave after the lane's delay
		return f.storedAt().Add(p.delay), true
	}
	since, again := p.kind.leaves(p, f)
	switch {
	case s.kind == hold && (!again || f.request.Paced != ""):
		return leader.Time{}, false
	case f.request.Due.IsZero(): // it could not be read
		return f.storedAt(), true
	}
	if p.resumed.After(since) {
		since = p.resumed
	}
	return since, true
}
