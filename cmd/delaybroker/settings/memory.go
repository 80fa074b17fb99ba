package settings

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"delaybroker/broker/config"
)

// ReadMemory returns the limits on the memory of this process.
func ReadMemory() config.Memory {
	return config.Memory{Cgroup: cgroupLimit("/sys/fs/cgroup", "/proc/self/cgroup"), Runtime: debug.SetMemoryLimit(-1)}
}

// KeepWithin sets how often the runtime collects garbage: often enough that the process stays below its limit, and no
// more often. GOMEMLIMIT and GOGC have precedence.
func KeepWithin(m config.Memory, hold int, embedded bool) {
	limit, percent := m.Collect(hold, embedded)
	if m.Runtime == config.NoLimit {
		debug.SetMemoryLimit(limit)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// memory reads DELAY_MEMORY: how many bytes messages may take.
func (p *problems) memory(name, value string, m config.Memory, embedded bool) int {
	if value == "auto" {
		return m.Hold(embedded)
	}
	n, err := humanize.ParseBytes(value)
	if most := uint64(min(m.Soft(), math.MaxInt64)); err != nil || n < config.MinHoldBytes || n > most {
		what := "at least " + humanize.IBytes(config.MinHoldBytes)
		if m.Soft() != config.NoLimit {
			what = fmt.Sprintf("%s to %s, which the process may have",
				humanize.IBytes(config.MinHoldBytes), humanize.IBytes(most))
		}
		p.refuse(name, value, "want auto, or bytes such as 64MiB, %s", what)
		return config.DefaultHoldBytes
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
