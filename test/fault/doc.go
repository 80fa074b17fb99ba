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
// Servers and brokers are processes of their own, so they can be killed and stopped as by kill. Brokers reach servers,
// and servers each other, through proxies in this process, which can hold back what they carry or drop it: a cut-off
// without the rights that a network namespace takes. Everything a run does follows from its seed; when it happens to
// the microsecond does not. The events of a run are a history, which package history judges.
//
//	go test ./test/fault                                                     # the usual faults once
//	go test ./test/fault -run TestScenarios -v -fault.long -timeout 0           # rare and long faults
//	go test ./test/fault -run TestFaults -v -fault.seed 1 -fault.runs 100 -timeout 0   # a line for each, then totals
//	go test ./test/fault -run TestFaults -v -fault.duration 2h -timeout 0    # random runs for so long
//	go test ./test/fault -run TestFaults -v -fault.seed 42                   # one of them again
//	go test ./test/fault -run TestMutants -fault.mutants -timeout 20m        # brokers that are broken on purpose
//
// Random runs print a line of JSON and one for people at the end, and the command fails if any run broke a promise or
// came to no judgement. Several of these commands run side by side on one machine, say with -fault.seed 1 and
// -fault.seed 1000: each has a loopback address and directories of its own. A run that fails leaves history, logs and
// data in the directory that it prints, below the temporary one (TMPDIR); with -fault.keep DIR every run leaves them
// there.
//
// # What counts
//
// Copies are excused by a fault that crashes something or loses acknowledgements, and by none that ended ten seconds
// before.
//
// A run counts only if enough was published before, during and after each fault, and each fault is proved to have
// happened: a process that is gone, a leader that changed, bytes that a proxy kept. Safety is judged strictly; lateness
// only by tens of seconds after the end of a fault, because the machine may be busy.
//
// # How the target's stream is read on every server
//
// A direct get is answered by any replica, and to stop two servers is to look at the third in another state than it was
// in. A consumer without replicas lives on one server and reads that server's copy, and the server says which it is.
// They are placed at random, so as many are made as it takes to have one on each.
//
// # What is left out
//
// Disks that lie about fsync, and power cuts: the page cache survives every fault here. Clocks: all processes share
// one, which is what makes "early" exact; clocks that step or disagree are tested under fake time.
package fault
