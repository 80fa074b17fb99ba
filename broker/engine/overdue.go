package engine

import "delaybroker/broker/leader"

// overdueSince returns the time since which a message is overdue, given its next step. Ok is false if the message is
// not overdue.
//
//	a message in a retry lane                          overdue from its due time on
//	a message that waited for its target's rate        overdue from its reserved send time on
//	a message that waited for the end of a pause       overdue from the resumption on
//	a message that only a newer broker can read        overdue from the end of the lane's delay on
func overdueSince(p plan, f *flight, s step) (since leader.Time, ok bool) {
	if f.hasNewerFormat() { // its due time cannot be read
		return f.storedAt().Add(p.delay), true
	}
	since, retry := p.kind.deadline(p, f)
	switch {
	case s.kind == hold && (!retry || f.request.Reservation != ""):
		return leader.Time{}, false
	case f.request.Due.IsZero(): // the message could not be parsed
		return f.storedAt(), true
	}
	if p.resumed.After(since) {
		since = p.resumed
	}
	return since, true
}
