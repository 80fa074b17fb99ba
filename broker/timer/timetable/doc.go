// Package timetable computes when a recurring timer fires: at a fixed interval, or by a cron expression in a time zone.
// It is pure: it reads no clock and no headers.
//
// # Rounds
//
// A time table gives planned times. A round is one occurrence: it is planned for one of these times and, with jitter,
// due a little later. All planned times are computed from the table, never from the time at which the previous round
// fired. So there is no drift, and every instance computes the same planned times.
//
// The rounds that fire are numbered from 1. A missed round that does not fire has no number: "10 rounds" are ten
// deliveries. For a cron table, numbers for missed rounds would cost a search for each missed round.
//
// # Cron
//
// An expression has the usual five fields, or six with the seconds first. A day matches if its day of the month or its
// weekday matches. If one of these fields is *, both must match. Of Quartz, only two forms are accepted: L, the last
// day of the month, and fri#2, the second Friday of the month.
//
// # When clocks change
//
// A cron table gives local times of its zone. If the table restricts the hours, each local time denotes one moment: the
// first moment at which the local clock shows that time or a later one. So the round of a local time that a clock
// change skips is planned right after the gap. A local time that occurs twice has one round, at the first occurrence.
// Two local times that denote one moment have one round. If the table does not restrict the hours (*), a round is
// planned whenever the local clock shows one of the table's minutes and seconds, in every hour that passes.
//
// # Tried and rejected
//
// The library github.com/netresearch/go-cron. Its search loses a local time that a clock change of less than an hour
// skips (Lord Howe), and returns both occurrences of a local time that occurs twice. Its parser accepts an empty list.
package timetable
