// Package metrics shows the state of a broker to Prometheus. All names of metrics are in this package.
//
// Nothing is counted here: the loops keep counts and gauges in memory anyway, and a scrape reads them through
// [delaybroker/broker.Broker.Status]. So a scrape asks NATS nothing, waits for no loop, and costs the same with a
// million messages pending as with none. The age of a figure follows from that:
//
//   - Counts, messages in flight, the wheel, overdue and commit age are of this moment. Overdue and commit age go on
//     rising while a loop sleeps, is cut off or hangs, because the points in time are kept and not the differences.
//   - Pending is of this moment for a lane that is being read. A lane that is full or rests asks its stream every
//     five seconds, that of the timers once a minute.
//   - The bytes of a stream are those of the last look at it. Every commit looks, and a full lane every five seconds.
//   - If a stream cannot be read at all, its figures are not known: lane_live and ready say so.
//
// No subject, id, target or tenant is a label, since those are chosen by clients. The label lane is the name of a
// stream of ours, kind one of five, code one of twelve, outcome one of seven: with the default levels there are some
// 820 series, those of the Go runtime included. The label pattern is one of DELAY_RATE, so the operator bounds it: two
// series for each. The targets themselves, up to a number, are on the page. The busiest of them would be no series:
// one that comes and goes has no rate.
//
// A lane of another instance has lane_owned 0, and the counts from the time when it was ours. Alerts about lanes take
// the maximum over the instances, as test/deploy does.
package metrics
