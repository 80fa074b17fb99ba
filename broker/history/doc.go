// Package history keeps what an instance delivered, refused and held in the last hour and the last day, in memory.
//
// A Book has two rings: an hour in steps of ten seconds, and a day in steps of five minutes. Its size does not depend
// on the load, and is below 150 KB. What is older than a day is for a monitoring system, which reads the metrics.
//
// # Steps lie on the clock
//
// A step begins at a multiple of its length since 1970. So the steps of several instances lie on each other, as far as
// their clocks agree, and the histories of a fleet can be added up (Series.Add). That is why the lateness is kept as
// counts by bucket: of two percentiles there is no sum.
//
// A Book is written by who has the counts, and read by whoever draws them. Time is an argument. Tried and rejected:
// recording only while somebody looks. Whoever opens the page at 3 a.m. wants to see 2 a.m.
package history
