// Package store lists the named timers in their stream, and changes many of them. The operator's commands use it with
// the broker up or down. The broker uses it for requests on the subjects delayctl.>. Package change changes each timer.
//
//	List   goes through the stream's headers, page by page
//	Bulk   carries out a verb for all timers of a page
//
// A schedule is a timer with the name _schedule.<the schedule's subject>. The target is in a header of its entries, so
// a list for a target takes a separate pass through the headers of all schedules.
//
// # Operations
//
// A page takes one read of the stream's state, one consumer for each filter, and one read for each timer, which shows
// whether the timer was replaced; 64 of these reads run at a time. A consumer has only one filter: with two, the server
// counts the pending messages subject by subject, under the stream's lock. That takes seconds for 60,000 timers, and
// the stream stores nothing meanwhile. cancel-all and shift change 16 timers at a time.
package store
