//go:build linux

// Package fault breaks things while messages wait, and looks for those that are lost, early or there twice.
//
// A run is three nats-servers as a cluster with JetStream on disk, brokers, which are the real command, and publishers:
//
//	publishers (here) ──▶ servers 1, 2, 3 ◀──proxies──▶ brokers
//	                      ▲ ▲ ▲ └─proxies─┘
//	witnesses (here) ─────┘ │ └───── readers (here): what the target's stream holds on each, at the end
//	                      administrator (here)
//
// Servers and brokers are processes of their own, so they can be killed and stopped as by kill. Brokers reach servers, and
// servers each other, through proxies in this process, which can hold back what they carry or drop it: a cut-off without
// the rights that a network namespace takes. Everything a run does follows from its seed; when it happens to the
// microsecond does not. What it did is a history, which package history judges.
//
//	go test ./test/fault                                                     # each kind of fault once
//	go test ./test/fault -run TestFaults -fault.duration 2h -timeout 0       # random runs, with totals
//	go test ./test/fault -run TestFaults -fault.seed 42                      # one of them again
//	go test ./test/fault -run TestMutants -fault.mutants -timeout 20m        # brokers that are broken on purpose
//
// # What counts
//
// A run counts only if enough was published before, during and after each fault, and each fault is proved to have
// happened: a process that is gone, a leader that changed, bytes that a proxy kept. Safety is judged strictly; lateness
// only by tens of seconds after the end of a fault, because the machine may be busy.
//
// # How the target's stream is read on every server
//
// A direct get is answered by any replica, and to stop two servers is to look at the third in another state than it was
// in. A consumer without replicas lives on one server and reads that server's copy, and the server says which it is. They
// are placed at random, so as many are made as it takes to have one on each.
//
// # What is left out
//
// Disks that lie about fsync, and power cuts: what the page cache holds survives every fault here. Clocks: all processes
// share one, which is what makes "early" exact; clocks that step or disagree are tested under fake time.
package fault
