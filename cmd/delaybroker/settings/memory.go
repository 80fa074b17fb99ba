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

// ReadMemory returns the memory limits of this process.
func ReadMemory() config.Memory {
	return config.Memory{Cgroup: cgroupLimit("/sys/fs/cgroup", "/proc/self/cgroup"), Runtime: debug.SetMemoryLimit(-1)}
}

// ConfigureGC sets the memory limit of the Go runtime and the percentage of its garbage collector to the values of
// [config.Memory.GCSettings]. It does not change a limit from GOMEMLIMIT or a percentage from GOGC. Hold is the maximum
// number of bytes of messages in memory.
func ConfigureGC(m config.Memory, hold int, embedded bool) {
	limit, percent := m.GCSettings(hold, embedded)
	if m.Runtime == config.NoLimit {
		debug.SetMemoryLimit(limit)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// memory parses DELAY_MEMORY, the maximum number of bytes for messages.
func (p *problems) memory(name, value string, m config.Memory, embedded bool) int {
	if value == "auto" {
		return m.DefaultHold(embedded)
	}
	n, err := humanize.ParseBytes(value)
	if limit := uint64(min(m.SoftLimit(), math.MaxInt64)); err != nil || n < config.MinHoldBytes || n > limit {
		bounds := "at least " + humanize.IBytes(config.MinHoldBytes)
		if m.SoftLimit() != config.NoLimit {
			bounds = fmt.Sprintf("%s to %s, the limit of the process",
				humanize.IBytes(config.MinHoldBytes), humanize.IBytes(limit))
		}
		p.refuse(name, value, "want auto, or bytes such as 64MiB, %s", bounds)
		return config.DefaultHoldBytes
	}
	return int(n)
}

// cgroupLimit returns the lowest memory limit of the process's control group and of the group's ancestors, or zero
// without a limit. Root is the directory of control groups, and self is the file with the process's group.
func cgroupLimit(root, self string) int64 {
	text, _ := os.ReadFile(self) // without the file, only the root counts
	lowest := int64(0)
	search := func(base, group, file string) {
		for path := filepath.Join("/", group); ; path = filepath.Dir(path) {
			if n := readLimit(filepath.Join(base, path, file)); n > 0 && (lowest == 0 || n < lowest) {
				lowest = n
			}
			if path == "/" {
				return
			}
		}
	}
	groupV2, groupV1 := "/", "/"
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			switch {
			case parts[0] == "0" && parts[1] == "":
				groupV2 = parts[2]
			case strings.Contains(","+parts[1]+",", ",memory,"):
				groupV1 = parts[2]
			}
		}
	}
	search(root, groupV2, "memory.max")
	search(filepath.Join(root, "memory"), groupV1, "memory.limit_in_bytes")
	return lowest
}

// readLimit reads a limit in bytes from a file of a control group. It returns zero for no limit, and without the file.
func readLimit(path string) int64 {
	text, _ := os.ReadFile(path) // without the file, the text is empty, and no limit
	const unlimited = 1 << 60    // for no limit, version 1 has a huge number, version 2 "max"
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < unlimited {
		return n
	}
	return 0
}
