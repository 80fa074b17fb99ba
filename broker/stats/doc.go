// Package stats has the self-report of a broker: the types that /status, the metrics and the operator's commands show,
// and the counters and gauges behind them.
//
// The loop of a lane writes counters and gauges, and any goroutine may read them at any time. Counters are atomic. In
// each iteration, a pass, the loop writes a Report. Ages are stored as points in time, so that they grow even while the
// loop sleeps or hangs. A commit removes messages that have left the lane from its stream; in the lane of timers, it
// stores a cursor instead.
//
// # Invariants
//
//   - The lock of a Gauge is held only to copy a Report.
//   - The JSON of Status is an interface: names stay, fields may be added. The embedded types are for readers of the
//     source. In JSON, their fields belong to the object that embeds them.
//   - Counts.EarlyReadings must stay zero: see EarlyCheck.
//   - The counts of a lane outlive its workers.
//
// # Tried and rejected
//
// Prometheus collectors as the counters themselves: the engine would depend on Prometheus, and /status would have to
// read the counts back from the collectors.
package stats
