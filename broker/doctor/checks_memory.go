package doctor

import (
	"fmt"

	"delaybroker/broker/config"
)

func checkMemory(f Facts) []Finding {
	const mibShift = 20 // from bytes to MiB
	m, hold := f.Host.Memory, f.Config.HoldBytes
	switch {
	case m.Cgroup == 0:
		return finding(Fine, "", "no memory limit is set by a cgroup")
	case m.Runtime >= m.Cgroup && m.Runtime != config.NoLimit:
		return finding(Warn, fmt.Sprintf("remove GOMEMLIMIT, or set GOMEMLIMIT=%dMiB", m.SoftLimit()>>mibShift),
			"GOMEMLIMIT is %d MiB and the cgroup's limit %d MiB, so the process may be killed before it collects garbage",
			m.Runtime>>mibShift, m.Cgroup>>mibShift)
	case int64(hold) > m.SoftLimit()/2:
		return finding(Warn, fmt.Sprintf("set DELAY_MEMORY to %dMiB, or remove DELAY_MEMORY", m.DefaultHold(false)>>mibShift),
			"DELAY_MEMORY is %d MiB, messages and garbage take twice as much, and the cgroup's limit is %d MiB,"+
				" so the process may be killed",
			hold>>mibShift, m.Cgroup>>mibShift)
	}
	return finding(Fine, "",
		"the cgroup's limit is %d MiB; the Go runtime is limited to %d MiB, and messages to %d MiB",
		m.Cgroup>>mibShift, m.SoftLimit()>>mibShift, hold>>mibShift)
}
