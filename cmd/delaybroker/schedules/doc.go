// Package schedules keeps recurring timers as a file says: it reads the file, finds what differs from what stands in
// the stream, and does what is to be done about it.
//
//	Read     a File, or all that is wrong with it
//	Plan     what is to be done about one schedule, by what stands there: pure
//	Removal  likewise, about one that is not in the file any more
//	Apply    looks, plans and acts, for all of them
//
// # Whose a schedule is
//
// A file has a name for its set. It travels as Delay-Owner in the entries of all that the file makes, and stays there
// from round to round. Only what has that mark is changed or removed. What somebody else made under the same name is
// left, and told; --adopt takes it over.
//
// # Again and again
//
// Applying a file a second time does nothing. So all that a file says is absolute: a first time, and not a delay; a
// last time, and no number of rounds, of which nobody knows how many have been once the series is over.
//
// A change keeps in step: what keeps its interval keeps its phase. If it began anew, a schedule of fifteen minutes that
// is deployed every ten would never fire. A change is a new series, as by hand: its rounds count from 1 again.
//
// # Several at once
//
// Each publish expects the sequence that was looked at, so of two runs, or of a run and a firing, one is refused. It
// looks again, and mostly finds nothing left to do. Runs with different files of one set are not told from one that was
// edited in between: the later one wins, line by line.
//
// # What was tried and rejected
//
// A digest of the definition in the mark, instead of comparing: it says that nothing has changed although somebody has
// changed the time table by hand.
package schedules
