// Package store reads and changes the named timers in their stream: it looks at one, sets, cancels, moves and fires it,
// lists many, and cancels or moves many. The operator's verbs use it with the broker up or down; the broker uses it for
// those who ask on delayctl, and for schedules.
//
//	Entries   reads the entries of a timer's subject at the leader
//	Attempt   repeats a change until its outcome is certain: reads, publishes, classifies the answer, and reads again
//	Timers    carries out a change by timer.Decide, as an Attempt
//	List      a pass through the stream's headers, page by page
//	Bulk      a verb for all timers of a page
//
// A schedule as of nats-server is a timer, by the name _schedule.<its subject>. Its target stands in its entries. So a
// list for a target takes a pass of its own through the headers of all schedules. What is written about one needs our
// seal. A dry run makes the entries that would be published, and counts as refused what cannot be made.
//
// # Every answer is final, or unknown
//
// Every verdict is one publish that expects a generation, so the stream's leader decides. What it said is final: an
// acknowledged cancel is never delivered, and a timer that is too late has fired. What it did not say is looked up:
// each request has a word of its own, which travels with what it writes, and with what becomes of that. So a lost
// acknowledgement is no loss, nor is a refusal by a leader that was deposed. Where another client, which expects
// nothing, has put something over it, what came right behind the generation tells. Where nothing can tell any more, the
// answer is unknown.
//
// An error says that nothing was done.
//
// # Whose clock counts
//
// That of the stream's leader (Timers.Now), which stamps what is stored: when a moved round is due, how long a schedule
// lives, and what is too far ahead. The clock of this host may be wrong; it stands in answers, for people, and measures
// durations. Only a Set is judged by it beforehand: who may publish a timer may have no right to ask for another time.
//
// # Bounds
//
// A page ends after so many timers, bytes or entries, or before the asker gives up, and says where to go on.
//
// Nothing waits for what only another client can do. A generation beyond the end of the stream is unknown at once.
//
// # Operations
//
// A request makes so many questions to the leader of the stream, one after the other, and so many publishes:
//
//	                                      questions  publishes
//	get                                   1          0
//	get, and nothing stands there         3          0
//	cancel of a generation                0          1
//	cancel of whatever stands there       1          1
//	cancel of another generation          2          1
//	cancel of a generation to come        3          1
//	move                                  3          1         one asks for the leader's time, one tells the due time
//	fire                                  1          1
//
// A page asks once for the state of the stream, and once for each of its timers whether it was replaced, 64 at a time.
// It makes a consumer for each target: one, or two where the subject names a beginning of targets and the body none.
// Each has one filter. With two of them the server counts what is pending subject by subject, seconds for 60,000
// timers, under the stream's lock, while nothing can be stored there. cancel-all and shift carry out their verb for 16
// timers at a time.
package store
