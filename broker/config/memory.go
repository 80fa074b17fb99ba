package config

import "math"

const (
	// NoLimit is how the Go runtime says that it has none.
	NoLimit = math.MaxInt64

	// ownMemory is what the process takes with forty lanes and no message: code, connections, channels.
	ownMemory = 48 << 20
	// small is a limit below which garbage is collected as often as Go does.
	small = 256 << 20
	// maxHold is the most that messages get by default. More has to be set.
	maxHold = 1 << 30
)

// Memory is what a broker's process may use, in bytes.
type Memory struct {
	Cgroup  int64 // the limit of its control group; zero is none
	Runtime int64 // GOMEMLIMIT; NoLimit is none
}

// Soft is the limit for the Go runtime: GOMEMLIMIT, or nine tenths of the control group's limit, which leaves room for
// memory that the runtime does not count. NoLimit is none.
func (m Memory) Soft() int64 {
	if m.Cgroup == 0 {
		return m.Runtime
	}
	return min(m.Runtime, m.Cgroup/10*9)
}

// Hold is how many bytes messages may take: half of what is left for them, because garbage takes as much again; and
// half of that where a server is embedded.
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

// Collect says to what limit the runtime keeps, and by how many per cent of what is in use garbage may grow before it
// is collected. To collect seldom makes a busy level up to a fifth faster. Where there is no limit, the process keeps
// to what it would take if garbage took as much as the messages that it may hold. Beside a small limit there is nothing
// to gain: full lanes and as much garbage nearly take it. And what a server in the process needs nobody knows: without
// a limit it gets the runtime's defaults.
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
