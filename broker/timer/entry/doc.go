// Package entry reads and writes the entries of the timers' stream, and the markers that stand for timers in the
// levels. It is pure. A named timer is a subject, delaytimer.<key>.<target…>, and the last entry of the subject is the
// timer's state:
//
//	set     a client's: Delay-For, Delay-Until, Delay-Every or Delay-Cron, with the body
//	round   ours, of a series: the firing of one round and the set of the next
//	cancel  a client's: Delay-Cancel
//	fired   ours: Delay-Fired, with the body; it is on its way to the target
//	over    ours: Delay-Over; what became of it
//
// The sequence of a set is its generation. Clients may publish there, so an entry of ours counts only with a seal.
//
// # Series
//
// A client's set with a time table starts a series; its generation is the name of the series. From then on, the set of
// each round is an entry of ours, with all that the client wrote: it was stored in place of the round before, and is
// the only evidence of what became of that one.
//
//	set g          round 1 of series g
//	round g → h    round 1 has fired; h is round 2
//	round h → i    without an instance: round 2 was missed, moved or paused; i is round 2 at another time
//	fired i → j    the last round has fired
//
// Of the round before, such an entry is what a plain firing is: Delay-Id, Delay-Due and so on are that round's. What is
// its own stands in Delay-Planned, Delay-Next and Delay-Next-Wait.
//
// # Schedules
//
// A schedule is a timer of somebody who speaks the dialect of nats-server's own scheduling. Package schedules answers
// him, and writes here what he asks for. The subject of a schedule is its identity, whatever its target: the entry's
// subject is delaytimer._schedule.<the schedule's subject>, and the target stands in a header. So such an entry counts
// only with our seal. What a client publishes there by itself is refused as a bad set is.
package entry
