// Package timetable computes when a recurring timer fires: at a fixed interval, or by a cron expression in a time zone.
// It is pure: it reads no clock and no headers.
//
// # Rounds
//
// A round is one occurrence. It is planned for a time of the table, and due then or, with jitter, a little later. The
// next round is computed from the table and the planned times, never from the time at which the last round fired. So
// there is no drift, and every instance computes the same result (Table.Decide).
//
// Rounds are numbered from 1 as they fire. A missed round does not use up a number: "10 rounds" are ten deliveries.
//
// # Cron
//
// An expression has the usual five fields, or six with the seconds first. If both the day of the month and the weekday
// are restricted, a day matches if either matches. If one of them is *, both must match. The library
// github.com/netresearch/go-cron parses expressions. This package searches the calendar itself. A search ends after 41
// years: the longest wait, for a leap day on a given weekday, is 40 years.
//
// # When clocks change
//
// A cron table gives local times of its zone. If the table restricts the hours, each local time stands for one moment:
// the first moment at which the local clock shows that time or a later one. So a local time that a clock change skips
// runs right after the gap. A local time that occurs twice runs the first time. Two local times that fall on one moment
// run once. A table for every hour (* in the hours' field) runs whenever the local clock shows one of its minutes and
// seconds, in each hour that passes.
//
// # Tried and rejected
//
// The library's own search. It loses a local time that a clock change of less than an hour skips (Lord Howe), and it
// returns a local time that occurs twice two times.
//
// Numbers for missed rounds too. For a cron table, that costs a search through all missed rounds.
package timetable
