// Package capacity computes the resources that a load needs: streams, disk, memory, CPU and network of servers and
// brokers, and the limit that the load reaches first. It only calculates: it connects to nothing, and measures nothing.
//
// # The model
//
// A message is stored once in each lane on its way: see package levels. Each pass through a lane has a constant cost,
// and so has the delivery. So disk, memory, network and the work of the CPU are sums of costs times rates, and twice
// the rate needs twice as much. A named timer is stored in the stream of timers, and its marker passes levels. A marker
// is a message without a body, at whose due time the broker fires the timer.
//
// The CPU time of wake-ups is not proportional to the rate. A message that arrives alone wakes the client library, the
// broker and the server. Messages that come together share the wake-ups. So the model has a constant cost of wake-ups
// for each message, up to 1,000 messages a second. At higher rates, the wake-ups together cost as much as at 1,000.
// [Cores] has work and wake-ups separately.
//
// A longer delay may need less: a message whose delay is a level passes one lane, and a message whose delay is shorter,
// and not a level, passes several lanes. In those lanes it also has the broker's headers.
//
// # Accuracy
//
// The coefficients were measured on the machine of test/rivals, most of them in one run. The load, the broker and the
// server share its two cores. From hour to hour, measurements on that machine differ by a third, and another machine
// differs more. TestMeasured requires results within a factor of two of the measurements, including measurements from
// which no coefficient was taken.
//
// The model leaves out a server's own memory, the consumers of the targets, retries, dead letters, the journal, and the
// disk of the targets' streams, which depends on their retention.
package capacity
