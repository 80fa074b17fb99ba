package main

import "fmt"

func checkMemory(f facts) []finding {
	const name = "memory"
	hold := f.cfg.broker.HoldBytes
	switch {
	case f.memory.cgroup == 0:
		return verdict(name, fine, "", "no limit here")
	case f.memory.golang >= f.memory.cgroup && f.memory.golang != noLimit:
		return verdict(name, warn, fmt.Sprintf("leave GOMEMLIMIT out, or set GOMEMLIMIT=%dMiB", f.memory.soft()>>20),
			"GOMEMLIMIT is %d MiB, the limit %d MiB: the process may be killed before it collects garbage", f.memory.golang>>20, f.memory.cgroup>>20)
	case int64(hold) > f.memory.soft()/2:
		return verdict(name, warn, fmt.Sprintf("set DELAY_MEMORY to %dMiB, or leave it out", f.memory.hold(false)>>20),
			"DELAY_MEMORY is %d MiB of a limit of %d MiB: garbage takes as much again, and the process may be killed", hold>>20, f.memory.cgroup>>20)
	}
	return verdict(name, fine, "", "limited to %d MiB, of which the runtime keeps to %d MiB, and messages may take %d MiB", f.memory.cgroup>>20, f.memory.soft()>>20, hold>>20)
}
