// Package store reads and changes the named timers in their stream: it reads, sets, cancels, moves and fires one, lists
// many, and cancels or moves many. The operator's commands use it with the broker up or down. The broker uses it for
// requests on delayctl, and for schedules.
//
//	Entries   reads the entries of a timer's subject from the leader
//	Attempt   repeats a change until its outcome is certain: reads, publishes, classifies the answer, and reads again
//	Timers    carries out a change by timer.Decide, as an Attempt
//	List      goes through the stream's headers, page by page
//	Bulk      carries out a verb for all timers of a page
//
// A schedule of nats-server's kind is a timer with the name _schedule.<its subject>. Its entries contain its target. So
// a list for a target takes a separate pass through the headers of all schedules. An entry of a schedule needs our
// seal. A dry run makes the entries that would be published, and counts those that cannot be made as refused.
//
// # Every answer is final, or unknown
//
// Every change is one publish that expects a generation, so the stream's leader decides. Its answer is final: an
// acknowledged cancel is never delivered, and a timer that is too late has fired. If the answer is missing, the outcome
// is read: each request has an ID of its own, which its entry carries, and so do later entries of the same timer. So a
// lost acknowledgement is no loss, nor is a refusal by a deposed leader. If another client has published over the entry
// without an expected generation, the entry right behind the generation shows the outcome. If nothing can show it any
// more, the answer is unknown.
//
// An error means that nothing was changed.
//
// # Which clock counts
//
// The clock of the stream's leader counts (Timers.Now), which stamps stored messages: for the due time of a moved
// round, the lifetime of a schedule, and the maximum delay. The clock of this host may be wrong; it appears in answers,
// for people, and measures durations. Only a Set is judged by it beforehand: a client that may publish a timer may have
// no right to ask for another time.
//
// # Bounds
//
// A page ends after a maximum number of timers, bytes or entries, or before the client's timeout. It contains the
// position of the next page.
//
// No request waits for an event that only another client can cause. For example, a generation beyond the end of the
// stream is immediately unknown.
//
// # Operations
//
// A request makes this number of reads from the leader of the stream, one after the other, and of publishes:
//
//	                                      reads      publishes
//	get                                   1          0
//	get, and there is no entry            3          0
//	cancel of a generation                0          1
//	cancel of any generation              1          1
//	cancel of another generation          2          1
//	cancel of a generation to come        3          1
//	move                                  3          1         one for the leader's time, one for the due time
//	fire                                  1          1
//
// A page reads the state of the stream once. For each of its timers it asks whether the timer was replaced, 64 at a
// time. It makes one consumer for each target, or two if the subject is a prefix of targets and the body names no
// target. Each consumer has one filter. With two filters the server counts the pending messages subject by subject,
// under the stream's lock: that takes seconds for 60,000 timers, and nothing can be stored meanwhile. cancel-all and
// shift work on 16 timers at a time.
package store
