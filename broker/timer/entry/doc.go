// Package entry reads and writes the entries of the timers' stream, and the markers that stand for timers in the
// levels. It is pure. A named timer is a subject, delaytimer.<key>.<target…>, and the last entry of the subject is the
// timer's state:
//
//	set     of a client: Delay-For, Delay-Until, Delay-Every or Delay-Cron, with the body
//	round   ours, of a series: the firing of one round and the set of the next
//	cancel  of a client: Delay-Cancel
//	fired   ours: Delay-Fired, with the body; the message is on its way to the target
//	over    ours: Delay-Over; the outcome
//
// The sequence of a set is its generation. Clients may publish on the subject, so an entry of ours counts only with a
// seal.
//
// # Series
//
// A client's set with a time table starts a series. Its generation identifies the series. From then on, the set of each
// round is an entry of ours, with all the client's headers. It replaced the entry of the round before, and is the only
// evidence of that round's outcome.
//
//	set g          round 1 of series g
//	round g → h    round 1 has fired; h is round 2
//	round h → i    without an instance: round 2 was missed, moved or paused; i is round 2 at another time
//	fired i → j    the last round has fired
//
// For the round before, such an entry is the same as a plain firing: Delay-Id, Delay-Due and so on are that round's.
// The entry's own round is in Delay-Planned, Delay-Next and Delay-Next-Wait.
//
// # Schedules
//
// A schedule is a timer of a client that uses the dialect of nats-server's own scheduling. Package schedules answers
// the client, and writes its requests here. The subject of a schedule is its identity, whatever its target: the entry's
// subject is delaytimer._schedule.<the schedule's subject>, and a header contains the target. So such an entry counts
// only with our seal. A client's own message on that subject is refused as an invalid set.
package entry
