// Package change carries out the changes of named timers: it reads the last entry of a timer's subject, decides
// (timer.Decide), publishes, and repeats this until the outcome is certain. The broker's service, the schedules, the
// operator's commands, the page and the Go client all change timers with this package, with the broker up or down. The
// client's users import it, so it depends on few packages.
//
//	Reader    reads the stream of timers from its leader
//	Entries   reads the entries of a timer's subject
//	Attempt   repeats a change until its outcome is certain, by the rules of one kind of change
//	Timers    changes one timer as an Attempt
//
// A schedule is a timer with the name _schedule.<the schedule's subject>. An entry of a schedule needs our seal.
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
//	set                                   1          1         the read shows the due time
//	cancel of a generation                0          1
//	cancel of any generation              1          1
//	cancel of a replaced generation       2          1
//	cancel of a generation never stored   3          1
//	move                                  3          1         one for the leader's time, one for the due time
//	fire                                  2          1         one for the leader's time
//
// A move or a fire saves the read of the time if the leader was asked at most leader.Trust before.
package change
