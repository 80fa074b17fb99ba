package doctor

import (
	"fmt"

	"delaybroker/broker/config"
)

func checkMemory(f Facts) []Finding {
	const mib = 20 // the shift from bytes to MiB
	m, hold := f.Host.Memory, f.Config.HoldBytes
	switch {
	case m.Cgroup == 0:
		return finding(Fine, "", "this host sets no memory limit")
	case m.Runtime >= m.Cgroup && m.Runtime != config.NoLimit:
		return finding(Warn, fmt.Sprintf("remove GOMEMLIMIT, or set GOMEMLIMIT=%dMiB", m.SoftLimit()>>mib),
			"GOMEMLIMIT is %d MiB and the memory limit %d MiB, so the process may be killed before it collects garbage",
			m.Runtime>>mib, m.Cgroup>>mib)
	case int64(hold) > m.SoftLimit()/2:
		return finding(Warn, fmt.Sprintf("set DELAY_MEMORY to %dMiB, or remove it", m.DefaultHold(false)>>mib),
			"DELAY_MEMORY is %d MiB of a limit of %d MiB: garbage doubles DELAY_MEMORY, so the process may be killed",
			hold>>mib, m.Cgroup>>mib)
	}
	return finding(Fine, "",
		"limit %d MiB; the Go runtime is limited to %d MiB, and messages to %d MiB",
		m.Cgroup>>mib, m.SoftLimit()>>mib, hold>>mib)
}
