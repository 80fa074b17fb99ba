// Package history keeps in memory how many messages an instance delivered and held, and how many deliveries were
// refused, during the last hour and the last day.
//
// A Book has two rings: an hour in steps of ten seconds, and a day in steps of five minutes. Its size does not depend
// on the load, and is below 150 KB. Older data is the task of a monitoring system, which reads the metrics.
//
// # Steps are aligned to the clock
//
// A step begins at a multiple of its length since 1970. So the steps of several instances coincide, as far as their
// clocks agree, and the histories of a fleet can be added up (Series.Add). For the same reason the lateness is kept as
// counts by bucket: two percentiles cannot be added.
//
// One goroutine adds the counts, and others read the series. Time is an argument. Recording only while a page is open
// was tried and rejected: an operator who opens the page at 3 a.m. wants to see 2 a.m.
package history
