// Package history keeps an instance's numbers of delivered, refused and pending messages, and the lateness of its
// deliveries, in memory, for the last hour and the last day.
//
// A Book has two rings: an hour in steps of ten seconds, and a day in steps of five minutes. Its size does not depend
// on the load, and is below 150 KB. A monitoring system that reads the metrics keeps older data.
//
// # Steps are aligned to the clock
//
// A step begins at a multiple of its length since 1970. So the steps of several instances coincide, as far as their
// clocks agree, and Series.Add can add the histories of several instances. For the same reason the lateness is kept as
// counts by bucket: two percentiles cannot be added.
//
// One goroutine adds the counts, and others read the series. Callers pass the current time as an argument.
//
// # Tried and rejected
//
// Recording only while a page is open: an operator who opens the page at 3 a.m. wants to see the data of 2 a.m.
package history
