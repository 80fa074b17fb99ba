// Package schedules applies a file of recurring timers. It reads the file, finds the differences to the entries in the
// stream of the timers, and changes these entries.
//
//	Read     returns a File, or all its problems
//	Plan     decides about one schedule of the file, by its entry: pure
//	Removal  decides about one schedule that is not in the file any more: pure
//	Apply    reads, plans and changes, for all schedules
//
// # Ownership of a schedule
//
// A file names its set. All entries of the file have the set in Delay-Owner, from round to round. Apply changes and
// removes only schedules of the set. It leaves a schedule of another owner with the same name alone, and reports it.
// With --adopt it takes the schedule over.
//
// # Repeated application
//
// Applying a file a second time does nothing. So all values in a file are absolute: a first time and not a delay, a
// last time and not a number of rounds. After the end of a series, the number of its past rounds is unknown.
//
// A change that keeps the interval keeps the phase. If it began a new phase, a schedule of fifteen minutes that is
// deployed every ten would never fire. A change is a new series, as by hand: its rounds count from 1 again.
//
// # Concurrent runs
//
// Each publish expects the sequence that was read. So if two runs conflict, or a run and a firing, the server refuses
// one. That run reads again, and mostly finds nothing left to do. Apply cannot distinguish runs with different files of
// one set from runs with one edited file: the later one wins, line by line.
//
// # Tried and rejected
//
// A digest of the definition in the entry, instead of a comparison: it does not show that somebody has changed the
// schedule by hand.
package schedules
