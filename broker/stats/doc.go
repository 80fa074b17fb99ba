// Package stats is the self-report of a broker: the types that /status, the metrics and the operator's commands show,
// and the counters and gauges behind them.
//
// A worker's loop writes, and any goroutine reads, at any time. So all shared values are atomic, and neither side waits
// for the other. The loop writes a Report once in a pass. Ages are stored as points in time, so that they grow while
// the loop sleeps or hangs.
//
// # Invariants
//
//   - No figure takes a lock that a loop holds.
//   - The JSON of Status is an interface: names stay, fields are added. The groups in LaneStatus and Counts are for
//     readers of the source; in JSON all fields are on one level, in the order of the types.
//   - Early must stay zero: see Early.
//   - The counts of a lane outlive its workers.
//
// # Tried and rejected
//
// Prometheus collectors as the counters themselves: then the engine depends on Prometheus, and /status and the commands
// would read their own metrics. A mutex around one struct: a reader that is stopped while it holds the mutex stops the
// loop.
package stats
