// Package stats has the self-report of a broker: the types that /status, the metrics and the operator's commands show,
// and the counters and gauges behind them.
//
// A worker's loop writes, and any goroutine reads, at any time. Counters are atomic. In each iteration, a pass, the
// loop writes a Report. Ages are stored as points in time, so that they grow even while the loop sleeps or hangs.
//
// # Invariants
//
//   - The lock of a Gauge is held only to copy a Report. All other figures are read without a lock that a loop takes.
//   - The JSON of Status is an interface: names stay, fields may be added. The groups in LaneStatus and Counts are for
//     readers of the source. In JSON, all fields belong to one object, in the order of the types.
//   - Counts.EarlyReadings must stay zero: see EarlyCheck.
//   - The counts of a lane outlive its workers.
//
// # Tried and rejected
//
// Prometheus collectors as the counters themselves: the engine would depend on Prometheus, and /status and the commands
// would read their own metrics.
package stats
