package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"delaybroker/broker"
)

const (
	noLimit = math.MaxInt64 // of the runtime

	// ownMemory is what the process takes with forty lanes and no message: code, connections, channels.
	ownMemory = 48 << 20
	// maxHold is what messages are given without being asked. More is for who knows why.
	maxHold = 1 << 30
)

// memory is what this process may use.
type memory struct {
	cgroup int64 // bytes; zero is no limit
	golang int64 // GOMEMLIMIT; noLimit is none
}

func readMemory() memory {
	return memory{cgroup: cgroupLimit("/sys/fs/cgroup", "/proc/self/cgroup"), golang: debug.SetMemoryLimit(-1)}
}

// soft is what the runtime is to stay below: what it was told, or nine tenths of the hard limit, which leaves something for
// what it does not count. noLimit is none.
func (m memory) soft() int64 {
	if m.cgroup == 0 {
		return m.golang
	}
	return min(m.golang, m.cgroup/10*9)
}

// keepWithin has the runtime collect garbage before the process is killed for it.
func (m memory) keepWithin() {
	if m.golang == noLimit && m.cgroup > 0 {
		debug.SetMemoryLimit(m.soft())
	}
}

// hold is how much messages may take: half of what is there for them, because garbage takes as much again, and of that half
// where a server is embedded.
func (m memory) hold(embedded bool) int {
	most := int64(broker.DefaultHoldBytes)
	if m.soft() != noLimit {
		most = min(max((m.soft()-ownMemory)/2, broker.MinHoldBytes), maxHold)
	}
	if embedded {
		most = max(most/2, broker.MinHoldBytes)
	}
	return int(most)
}

// memory is how much messages may take.
func (p *problems) memory(name, value string, m memory, embedded bool) int {
	if value == "auto" {
		return m.hold(embedded)
	}
	n, err := humanize.ParseBytes(value)
	if most := uint64(min(m.soft(), math.MaxInt64)); err != nil || n < broker.MinHoldBytes || n > most {
		what := "at least " + humanize.IBytes(broker.MinHoldBytes)
		if m.soft() != noLimit {
			what = humanize.IBytes(broker.MinHoldBytes) + " to " + humanize.IBytes(most) + ", which the process may have"
		}
		p.refuse(name, value, "want auto, or bytes such as 64MiB, %s", what)
		return broker.DefaultHoldBytes
	}
	return int(n)
}

// cgroupLimit is the lowest limit of the control group that a process is in and of those around it, or zero. In a
// container its own is the root.
func cgroupLimit(root, self string) int64 {
	text, _ := os.ReadFile(self) // without it there is the root
	lowest := int64(0)
	look := func(base, group, file string) {
		for path := filepath.Join("/", group); ; path = filepath.Dir(path) {
			if n := readLimit(filepath.Join(base, path, file)); n > 0 && (lowest == 0 || n < lowest) {
				lowest = n
			}
			if path == "/" {
				return
			}
		}
	}
	two, one := "/", "/"
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			switch {
			case parts[0] == "0" && parts[1] == "":
				two = parts[2]
			case strings.Contains(","+parts[1]+",", ",memory,"):
				one = parts[2]
			}
		}
	}
	look(root, two, "memory.max")
	look(filepath.Join(root, "memory"), one, "memory.limit_in_bytes")
	return lowest
}

func readLimit(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	const unlimited = 1 << 60 // version 1 writes a huge number, version 2 "max"
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < unlimited {
		return n
	}
	return 0
}
