//go:build linux

// Package fault injects faults while messages wait, and checks that no message is lost, early or duplicated.
//
// A run has a cluster of three nats-servers with JetStream on disk, brokers, which are the real command, and
// publishers:
//
//	publishers (here) ──▶ servers 1, 2, 3 ◀──proxies──▶ brokers
//	                      ▲ ▲ ▲ └─proxies─┘
//	witnesses (here) ─────┘ │ └───── readers (here): what the target's stream holds on each, at the end
//	                      administrator (here)
//
// Servers and brokers are separate processes, so a run can kill and stop them by signals. Brokers connect to servers,
// and servers to each other, through proxies in this process. A proxy can hold data back or drop its connections. So a
// run simulates a partition without the privileges that a network namespace needs. The seed determines the actions of a
// run, but not their exact times. The events of a run are a history, which package history judges.
//
//	go test ./test/fault                                                     # the usual faults once
//	go test ./test/fault -run TestScenarios -v -fault.long -timeout 0           # rare and long faults
//	go test ./test/fault -run TestFaults -v -fault.seed 1 -fault.runs 100 -timeout 0   # a line for each, then totals
//	go test ./test/fault -run TestFaults -v -fault.duration 2h -timeout 0    # random runs for so long
//	go test ./test/fault -run TestFaults -v -fault.seed 42                   # one of them again
//	go test ./test/fault -run TestMutants -fault.mutants -timeout 20m        # brokers that are broken on purpose
//
// Random runs print one line of JSON and one readable line at the end. The command fails if any run violated a
// guarantee or could not be judged. Several of these commands can run on one machine, for example with -fault.seed 1
// and -fault.seed 1000: each has its own loopback address and directories. A failed run leaves its history, logs and
// data in the directory that it prints, below TMPDIR. With -fault.keep DIR, every run leaves them in DIR.
//
// # The judgement
//
// A fault that crashes a process or loses acknowledgements excuses duplicates, until ten seconds after the end of the
// fault.
//
// A run counts only if enough messages were published before, during and after each fault, and if the effect of each
// fault is proved: a process that is gone, a leader that changed, bytes that a proxy held back. Any lost, early or
// unexcused duplicate message fails the run. A message may be late until tens of seconds after the end of a fault,
// because the machine may be busy.
//
// # Reading the target's stream on every server
//
// Any replica may answer a direct get. If two servers were stopped to read the third, the state of the third would
// change. So a run uses consumers without replicas: such a consumer reads the copy of the server that it runs on, and
// its info names the server. The server of a consumer is random, so a run creates consumers until each server has one.
//
// # Not covered
//
// Disks that ignore fsync, and power cuts: the page cache survives every fault of this package. Clocks: all processes
// share one clock, so a run can judge "early" exactly. Tests with fake time cover clocks that step or differ.
package fault
