// Package metrics exports the state of a broker to Prometheus. All metric names are in this package.
//
// The package counts nothing itself: the loops keep counters and gauges in memory, and a scrape reads them through
// [delaybroker/broker.Broker.Status]. So a scrape sends nothing to NATS, waits for no loop, and costs the same with a
// million pending messages as with none. The age of a figure follows from that:
//
//   - Counts, messages in flight, the wheel, overdue and commit age are current. Overdue and commit age keep rising
//     while a loop sleeps, is cut off or hangs, because the loop stores points in time, not differences.
//   - Pending is current for a lane that is being read. A lane that is full or idle asks its stream every five seconds,
//     the timers' lane once a minute.
//   - The bytes of a stream are as of the last sample. Every commit takes a sample, and a full lane takes one every
//     five seconds.
//   - If a stream cannot be read at all, its figures are unknown: lane_live and ready show that.
//
// No subject, id, target or tenant is a label, since clients choose those. The label lane is the name of a broker's
// stream, kind one of five values, code one of twelve, outcome one of seven. With the default levels there are some 820
// series, including those of the Go runtime. The label pattern is a pattern of DELAY_RATE, so the operator bounds it:
// each pattern has two series. The page shows the targets, up to a limit. Even the busiest targets are not metrics,
// since a series that comes and goes has no rate.
//
// A lane that another instance owns has lane_owned 0, and the counts from the time when this instance owned it. Alerts
// about lanes must take the maximum over the instances, as test/deploy does.
package metrics
