// Package store reads and changes the named timers in their stream: one timer, or a page of timers. The operator's
// commands use it with the broker up or down. The broker uses it for requests on the subjects delayctl.>, and for
// schedules.
//
//	Entries   reads the entries of a timer's subject from the leader
//	Attempt   repeats a change until its outcome is certain: reads, publishes, classifies the answer, and reads again
//	Timers    carries out a change of one timer as an Attempt; timer.Decide determines its steps
//	List      goes through the stream's headers, page by page
//	Bulk      carries out a verb for all timers of a page
//
// A schedule is a timer with the name _schedule.<the schedule's subject>. The target is in a header of its entries, so
// a list for a target takes a separate pass through the headers of all schedules. An entry of a schedule needs our
// seal.
//
// # Every answer is final, or unknown
//
// An acknowledgement of a publish is final: see package timer. If the answer is missing, or is a refusal by a leader
// that may be deposed, the stream shows the outcome: the request's entry and the later entries of the same timer
// contain the request's ID. If another client has published over the entry without an expected generation, the entry
// that directly follows the generation shows the outcome. If no entry shows the outcome any more, the answer is
// unknown. After an error, nothing was changed.
//
// # Which clock counts
//
// The stream's leader stamps stored messages. So its clock (Timers.Now) decides about the due time of a moved round,
// the lifetime of a schedule, and the maximum delay. This host's clock may be wrong. It only measures durations, stamps
// answers for people, and checks a Set before its publish: a client that may publish a timer may lack the permission to
// ask the leader. If a client moves a round to a delay from now, Timers asks the leader during the request: a time that
// Now computes from an earlier answer may be too late, by at most the round trip of that answer.
//
// # Operations
//
// A request takes this number of consecutive reads from the leader of the stream, and of publishes:
//
//	                                      reads      publishes
//	get                                   1          0
//	get, without an entry                 3          0
//	cancel of a generation                0          1
//	cancel of any generation              1          1
//	cancel of a replaced generation       2          1
//	cancel of a generation never stored   3          1
//	move                                  3          1         one for the leader's time, one for the due time
//	fire                                  2          1         one for the leader's time
//
// A move or a fire saves the read of the time if the leader was asked at most leader.Trust before.
//
// A page takes one read of the stream's state, one consumer for each filter, and one read for each timer, which shows
// whether the timer was replaced; 64 of these reads run at a time. A consumer has only one filter: with two, the server
// counts the pending messages subject by subject, under the stream's lock. That takes seconds for 60,000 timers, and
// the stream stores nothing meanwhile. cancel-all and shift change 16 timers at a time.
package store
