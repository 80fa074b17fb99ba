// Package metrics exports the state of a broker to Prometheus. The names of all the broker's metrics are in this
// package.
//
// The package counts nothing itself. The loops keep counters and gauges in memory, and a scrape reads them through
// [delaybroker/broker.Broker.Status]. So a scrape sends nothing to NATS, waits for no loop, and costs the same with a
// million pending messages as with none. The figures have these ages:
//
//   - Counts, overdue and commit age are current. Overdue and commit age rise even while a loop sleeps, hangs or has no
//     connection, because the loop stores points in time, not differences.
//   - The number of messages in memory is from the last pass of the loop. So is pending for a lane that is being read.
//     The loop of any other lane requests pending from the stream every five seconds, and the loop of the timers' lane
//     once a minute.
//   - The bytes of a stream are from its last state. Most commits request the state, and the loop of a lane that is not
//     being read requests it every five seconds.
//   - If a stream cannot be read, its other figures do not change, and lane_live and ready are 0.
//
// No subject, id, target or tenant is a label, since clients choose those. The label lane is the name of a broker's
// stream. The label kind has five values, code has twelve, and outcome has seven. With the default levels there are
// some 820 series, including the series of the Go runtime. The label pattern is a pattern of DELAY_RATE, so the
// operator limits its values. Each pattern has two series. Targets are on the page, up to a limit, and not in the
// metrics: even the set of the busiest targets changes, and a series that comes and goes has no rate.
//
// For a lane that another instance owns, lane_owned is 0, and the counts are from the time when this instance owned it.
// So an alert about lanes must take the maximum over the instances, as in test/deploy.
package metrics
