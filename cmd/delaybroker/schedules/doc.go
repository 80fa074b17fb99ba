// Package schedules applies a file of recurring timers. It reads the file, compares it with the entries in the stream
// of the timers, and changes the entries.
//
//	Read     returns a File, or all its problems
//	Plan     returns the Step for one schedule of the file, without I/O
//	Removal  returns the Step for one schedule that is no longer in the file, or has ended, without I/O
//	Apply    reads, plans and changes, for all schedules
//
// # Ownership of a schedule
//
// A file names the set of its schedules. The entry of each round has the set's name in Delay-Owner. Apply changes and
// removes only schedules of the set. If a schedule with the same name and target is in another set, or in none, Apply
// reports the schedule and does not change it. With --adopt, Apply takes the schedule over.
//
// # Repeated application
//
// A second application of the same file must do nothing. Therefore all times in a file are absolute: a first time
// instead of a delay, and a last time instead of a number of rounds. After a series has ended, no entry has the number
// of its past rounds, so an application would start the series again.
//
// A change that keeps the interval and the first time keeps the times of the rounds. If each change began a new
// interval, a schedule of fifteen minutes that is changed every ten minutes would never fire. A change starts a new
// series, as a change by hand does: its rounds count from 1 again.
//
// # Concurrent runs
//
// Each publish expects the sequence that was read. So if another run or a firing changes the entry first, the server
// refuses the publish. The refused run reads the entry again, and plans again. Two files with one set are like two
// versions of one file: the later run wins, schedule by schedule.
//
// # Tried and rejected
//
// A digest of the definition in the entry, instead of a comparison: the digest does not show a change by hand.
package schedules
