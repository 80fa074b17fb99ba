// Package capacity computes the resources that a load needs: streams, disk, memory, CPU and network of servers and
// brokers, and the limit that it reaches first. It is arithmetic. It connects to nothing, and measures nothing.
//
// # The model
//
// A message is stored once in each lane on its way: see levels. Each of these passes has a constant cost, and so has
// the delivery. So disk, memory, network and the work of the CPU are sums of products, and twice the rate is twice the
// work.
//
// The processes also wake up, and that cost is not a product. A message that comes alone wakes the client library, the
// broker and the server. Messages that come together share the wake-ups. So wake-ups cost as much for each message as
// at 1,000 messages a second, and from there on as much as at 1,000 in total. [Cores] has the two parts separately.
//
// A larger load needs more of every resource. The delay is an exception: a delay that is a level passes one lane. A
// shorter delay that is not a level passes several, in which the message also has the broker's headers.
//
// # How exact it is
//
// The coefficients were measured on the machine of test/rivals, two cores that load, broker and server share, most of
// them in one run. Between two hours that machine differs by a third, and another machine differs more. TestMeasured
// requires results within a factor of two of the measurements, including measurements that gave no coefficient.
//
// Left out: a server's own memory, consumers of the targets, retries, dead letters, the journal, and the disk of the
// targets' streams, which is a question of their retention.
package capacity
