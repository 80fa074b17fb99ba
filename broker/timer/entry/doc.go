// Package entry parses and writes the entries of the timers' stream, and the markers that represent timers in the
// levels. It does no I/O. These are the entries of a timer's subject; package timer describes their use:
//
//	set     written by a client, or by a broker at a client's request: Delay-For, Delay-Until, Delay-Every or Delay-Cron
//	round   written by a broker, for a series: the set of a round and, usually, the firing of the previous one
//	cancel  written by a client, or by a broker at a client's request: Delay-Cancel
//	fired   written by a broker: Delay-Fired, with the body; the message is on its way to the target
//	over    written by a broker: Delay-Over; the outcome
//
// Clients may publish on the subject, so a round, a firing or an outcome counts only with a broker's seal.
//
// # Series
//
// A client's set with a time table starts a series. The generation of this set identifies the series. A broker writes
// the later sets and firings of the series. Each of them replaces the entry before it, and names an instance if the
// round of that entry has fired.
//
//	set g          sets round 1 of series g
//	round g → h    h records that round 1 has fired, and sets round 2
//	round h → i    i names no instance: round 2 was missed, moved or paused, and i sets round 2 again
//	fired i → j    j records that the last round has fired
//
// In the entry of a round, the headers that a firing also has, such as Delay-Id and Delay-Due, describe the replaced
// round. Delay-Planned, Delay-Next and Delay-Next-Wait describe the round that the entry sets.
//
// # Schedules
//
// A schedule is a timer of a client that uses the headers of nats-server's own scheduling: see package schedules. The
// subject of its entries is delaytimer._schedule.<the schedule's subject>, and a header contains the target. A client
// could name any target there, so such an entry counts only with a broker's seal. A client's own message on that
// subject is an invalid set.
package entry
