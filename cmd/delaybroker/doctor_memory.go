package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// memory is what this process may use.
type memory struct {
	cgroup int64 // bytes; zero is no limit
	golang int64 // GOMEMLIMIT; math.MaxInt64 is none
}

func readMemory() memory {
	return memory{cgroup: cgroupLimit("/sys/fs/cgroup", "/proc/self/cgroup"), golang: debug.SetMemoryLimit(-1)}
}

// cgroupLimit is the limit of the control group that a process is in, or zero. In a container its own is the root.
func cgroupLimit(root, self string) int64 {
	var group string
	if text, err := os.ReadFile(self); err == nil {
		for line := range strings.Lines(string(text)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				group = path
			}
		}
	}
	for _, path := range []string{
		filepath.Join(root, group, "memory.max"), filepath.Join(root, "memory.max"), filepath.Join(root, "memory", "memory.limit_in_bytes"),
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		const unlimited = 1 << 60 // version 1 writes a huge number, version 2 "max"
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n < unlimited {
			return n
		}
	}
	return 0
}

func checkMemory(f facts) []finding {
	const name = "memory"
	switch {
	case f.memory.cgroup == 0:
		return verdict(name, fine, "", "no limit here")
	case f.memory.golang == math.MaxInt64:
		return verdict(name, warn, fmt.Sprintf("set GOMEMLIMIT=%dMiB, or nine tenths of the limit", f.memory.cgroup*9/10>>20),
			"limited to %d MiB, and GOMEMLIMIT is not set: the process may be killed before it collects garbage", f.memory.cgroup>>20)
	case f.memory.golang >= f.memory.cgroup:
		return verdict(name, warn, fmt.Sprintf("set GOMEMLIMIT=%dMiB", f.memory.cgroup*9/10>>20),
			"GOMEMLIMIT is %d MiB, the limit %d MiB", f.memory.golang>>20, f.memory.cgroup>>20)
	}
	return verdict(name, fine, "", "GOMEMLIMIT %d MiB below a limit of %d MiB", f.memory.golang>>20, f.memory.cgroup>>20)
}
