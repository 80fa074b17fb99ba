package config

import "math"

const (
	// NoLimit is the Go memory limit that means no limit.
	NoLimit = math.MaxInt64

	// ownMemory is the memory of the process with forty lanes and no message: code, connections, channels.
	ownMemory = 48 << 20
	// small is the limit below which garbage is collected at Go's default rate.
	small = 256 << 20
	// maxHold is the maximum memory of messages by default. A larger value must be configured.
	maxHold = 1 << 30
)

// Memory is the memory available to a broker's process, in bytes.
type Memory struct {
	Cgroup  int64 // the limit of its control group; zero means none
	Runtime int64 // GOMEMLIMIT; NoLimit means none
}

// Soft returns the limit for the Go runtime. It is GOMEMLIMIT, or nine tenths of the control group's limit. The rest is
// for memory that the runtime does not count. NoLimit means none.
func (m Memory) Soft() int64 {
	if m.Cgroup == 0 {
		return m.Runtime
	}
	return min(m.Runtime, m.Cgroup/10*9)
}

// Hold returns the number of bytes for messages. It is half of the remaining memory, because garbage takes as much
// again, and half of that with an embedded server.
func (m Memory) Hold(embedded bool) int {
	most := int64(DefaultHoldBytes)
	if m.Soft() != NoLimit {
		most = min(max((m.Soft()-ownMemory)/2, MinHoldBytes), maxHold)
	}
	if embedded {
		most = max(most/2, MinHoldBytes)
	}
	return int(most)
}

// Collect returns the runtime's memory limit, and the percentage by which the heap may grow before a collection. Rare
// collections make a busy level up to a fifth faster. If the environment sets no limit, the limit is the memory of full
// lanes and as much garbage. A small limit allows no more than that, so Collect changes nothing. The memory of an
// embedded server is unknown, so without a limit it gets the runtime's defaults.
func (m Memory) Collect(hold int, embedded bool) (limit int64, percent int) {
	const seldom, usual = 400, 100
	switch limit := m.Soft(); {
	case limit < small:
		return limit, usual
	case limit != NoLimit:
		return limit, seldom
	case embedded:
		return NoLimit, usual
	}
	return 2*int64(hold) + ownMemory, seldom
}
