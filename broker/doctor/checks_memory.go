package doctor

import (
	"fmt"

	"delaybroker/broker/config"
)

func checkMemory(f Facts) []Finding {
	const mib = 20
	m, hold := f.Host.Memory, f.Config.HoldBytes
	switch {
	case m.Cgroup == 0:
		return verdict(Fine, "", "no limit here")
	case m.Runtime >= m.Cgroup && m.Runtime != config.NoLimit:
		return verdict(Warn, fmt.Sprintf("leave GOMEMLIMIT out, or set GOMEMLIMIT=%dMiB", m.Soft()>>mib),
			"GOMEMLIMIT is %d MiB, the limit %d MiB: the process may be killed before it collects garbage",
			m.Runtime>>mib, m.Cgroup>>mib)
	case int64(hold) > m.Soft()/2:
		return verdict(Warn, fmt.Sprintf("set DELAY_MEMORY to %dMiB, or leave it out", m.Hold(false)>>mib),
			"DELAY_MEMORY is %d MiB of a limit of %d MiB: garbage takes as much again, and the process may be killed",
			hold>>mib, m.Cgroup>>mib)
	}
	return verdict(Fine, "",
		"limited to %d MiB, of which the runtime keeps to %d MiB, and messages may take %d MiB",
		m.Cgroup>>mib, m.Soft()>>mib, hold>>mib)
}
