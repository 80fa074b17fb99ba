package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc, which is the same on every Linux that Go supports.
const tick = time.Second / 100

// UsageOf returns the usage of a running process by its id.
func UsageOf(pid int) (u Usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the usage of a process: %w", err)
	}
	// The second field is the program's name in parentheses. The name may contain spaces and parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("read the usage of a process: unexpected content of /proc/%d/stat: %q", pid, stat)
	}
	for _, field := range fields[11:13] { // utime, stime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("read the usage of a process: %w", err)
		}
		u.CPU += time.Duration(ticks) * tick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the usage of a process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		for name, destination := range map[string]*int64{"VmRSS:": &u.Memory, "VmHWM:": &u.Peak} {
			if value, ok := strings.CutPrefix(line, name); ok {
				kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
				if err != nil {
					return Usage{}, fmt.Errorf("read the usage of a process: %w", err)
				}
				*destination = kilobytes << 10
			}
		}
	}
	return u, nil
}
