// Package capacity computes the resources that a load needs: streams, disk, memory, CPU and network of servers and
// brokers, and the limit that it reaches first. It is arithmetic. It connects to nothing, and measures nothing.
//
// # The model
//
// A message is stored once in each lane on its way: see levels. Each of these passes has a constant cost, and so has
// the delivery. So disk, memory, network and the work of the CPU are sums of products, and twice the rate is twice the
// work.
//
// The processes also wake up, and that is no product. A message that comes alone wakes the client library, the broker
// and the server for itself. Messages that come together share this. So wake-ups cost as much for each message as at
// 1,000 messages a second, and from there on as much as at 1,000 in total. [Cores] has the two apart.
//
// More of anything takes more of everything. The delay is an exception: one that is a level passes one lane, and a
// shorter one that is none passes several, in which the message has the broker's headers besides.
//
// # How exact it is
//
// The coefficients are those of the machine of test/rivals, two cores that load, broker and server share. Most are one
// run. Between two hours that machine differs by a third, and another machine differs more. TestMeasured holds the
// results within a factor of two of what was measured, also where no coefficient was taken from.
//
// Left out: a server's own memory, consumers of the targets, retries, dead letters, the journal, and the disk of the
// targets' streams, which is a question of their retention.
package capacity
