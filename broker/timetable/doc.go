// Package timetable says when a recurring timer fires: every so often, or by a cron expression in a time zone. It is
// arithmetic: it asks no clock, and knows no headers.
//
// # Rounds
//
// A round is one occurrence. It is planned for a time of the table, and due then or, by the jitter, a little later.
// What comes after a round is computed from the table and the first time, never from when the last round happened to
// fire: so there is no drift, and whoever computes it gets the same (Table.Decide).
//
// Rounds are numbered from 1 as they fire. A round that is missed has no number: "10 rounds" are ten deliveries.
//
// # Cron
//
// Five fields, or six with seconds before them, as everywhere: a day matches by its day of the month or its weekday
// where both are given, and by both where one is *. The library github.com/netresearch/go-cron parses them. The search
// is our own: it goes by the calendar, and is bounded by 40 years, after which the weekdays and leap years of all
// expressions have come by.
//
// # When clocks change
//
// Cron's times are read off a clock on the wall of the zone. Of a table with given hours, each time on that clock has
// one moment: the first at which the clock shows it or a later one. So a time that a change skips runs when the clock
// goes on, one that comes twice runs the first time, and two that fall on one moment run once. A table of every hour (*
// in the hours' field) goes by the minutes: it runs whenever the clock shows them, in each hour that passes.
//
// # What was tried and rejected
//
// The library's own search: a time that is skipped within a zone whose change is not a whole hour is lost (Lord Howe),
// and one that comes twice runs twice. Numbering rounds by the table, missed ones included: for a cron that costs a
// search through all that was missed.
package timetable
