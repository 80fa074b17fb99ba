package config

import "math"

const (
	// NoLimit is the Go memory limit that means no limit.
	NoLimit = math.MaxInt64

	// baseMemory is the memory of the process with forty lanes and no message, in bytes: code, connections, channels.
	baseMemory = 48 << 20
	// smallLimit is the memory limit below which garbage is collected at Go's default rate, in bytes.
	smallLimit = 256 << 20
	// maxHold is the maximum default of HoldBytes.
	maxHold = 1 << 30
)

// Memory is the memory available to a broker's process, in bytes.
type Memory struct {
	Cgroup  int64 // the limit of the process's control group; zero means none
	Runtime int64 // GOMEMLIMIT; NoLimit means none
}

// SoftLimit returns the memory limit for the Go runtime, or NoLimit: the smaller of GOMEMLIMIT and nine tenths of the
// control group's limit. The last tenth is for memory that the runtime does not count.
func (m Memory) SoftLimit() int64 {
	if m.Cgroup == 0 {
		return m.Runtime
	}
	return min(m.Runtime, m.Cgroup/10*9)
}

// DefaultHold returns the default of HoldBytes, the memory for the messages of the lanes: DefaultHoldBytes without a
// limit, and otherwise half of what baseMemory leaves of the limit, but at most maxHold. The other half is for garbage.
// With an embedded server, the result is halved. It is at least MinHoldBytes.
func (m Memory) DefaultHold(embedded bool) int {
	hold := int64(DefaultHoldBytes)
	if m.SoftLimit() != NoLimit {
		hold = min(max((m.SoftLimit()-baseMemory)/2, MinHoldBytes), maxHold)
	}
	if embedded {
		hold = max(hold/2, MinHoldBytes)
	}
	return int(hold)
}

// GCSettings returns the runtime's memory limit, and the percentage by which the heap may grow before a garbage
// collection: see debug.SetMemoryLimit and debug.SetGCPercent. Rare collections make a busy level up to a fifth faster.
// If the environment sets no limit, the returned limit has room for hold bytes of messages and hold bytes of garbage.
// With a limit below smallLimit, the percentage is the default of Go. The memory of an embedded server is unknown. So
// with such a server and no limit, GCSettings returns Go's defaults.
func (m Memory) GCSettings(hold int, embedded bool) (limit int64, percent int) {
	const rarePercent, defaultPercent = 400, 100 // percent
	switch limit := m.SoftLimit(); {
	case limit < smallLimit:
		return limit, defaultPercent
	case limit != NoLimit:
		return limit, rarePercent
	case embedded:
		return NoLimit, defaultPercent
	}
	return 2*int64(hold) + baseMemory, rarePercent
}
