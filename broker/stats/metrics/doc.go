// Package metrics exports the state of a broker to Prometheus. The names of all the broker's metrics are in this
// package.
//
// The package counts nothing itself. The loops keep counters and gauges in memory, and a scrape reads them through
// [delaybroker/broker.Broker.Status]. So a scrape sends nothing to NATS, waits for no loop, and costs the same with a
// million pending messages as with none. The figures have these ages:
//
//   - Counters, overdue and commit age are current. Overdue and commit age rise even while a loop sleeps, hangs or has
//     no connection, because the loop stores points in time, not differences.
//   - The number of messages in memory is from the latest iteration of the loop.
//   - The number of pending messages, too, is from the latest iteration of a loop that is reading its lane. A loop that
//     has paused reading requests this number from the stream every five seconds. The loop of the timers requests it
//     once a minute.
//   - The size of a stream is from the latest such request. Most commits make one, too.
//   - If a stream cannot be read, ready and the lane's lane_live are 0, and its pending and size may be old.
//
// No subject, id, target or tenant is a label, since clients choose those. The label lane is the name of a broker's
// stream. The label kind has five values, code has twelve, and outcome has seven. With the default levels there are
// some 820 series, including the series of the Go runtime. The label pattern is a pattern of DELAY_RATE, so the
// operator limits its values. Each pattern has two series. Targets are on the page, up to a limit, and not in the
// metrics: even the set of the busiest targets changes, and a series that comes and goes has no rate.
//
// For a lane that another instance owns, lane_owned is 0, the other gauges of the lane are absent, and its counters
// have the values from the time when this instance owned the lane. So an alert about lanes must take the maximum over
// the instances, as in test/deploy.
package metrics
