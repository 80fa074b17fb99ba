package settings

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"delaybroker/broker/config"
)

// TestCgroupLimit: the lowest limit among those of the control group and its ancestors applies, in cgroup v1 and v2.
func TestCgroupLimit(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("self", "9:name=systemd:/\n4:hugetlb,memory:/pods/delay\n0::/system.slice/delay.service\n")
	write("v2/memory.max", "max\n")
	write("v2/system.slice/delay.service/memory.max", "536870912\n")
	write("container/memory.max", "268435456\n")
	write("none/memory.max", "max\n")
	write("v1/memory/memory.limit_in_bytes", "134217728\n")
	write("v1deep/memory/memory.limit_in_bytes", "9223372036854771712\n")
	write("v1deep/memory/pods/memory.limit_in_bytes", "67108864\n") // the limit of an ancestor
	write("v1deep/memory/pods/delay/memory.limit_in_bytes", "134217728\n")
	write("v1none/memory/memory.limit_in_bytes", "9223372036854771712\n")
	for root, want := range map[string]int64{
		"v2":        512 << 20,
		"container": 256 << 20,
		"none":      0,
		"v1":        128 << 20,
		"v1deep":    64 << 20,
		"v1none":    0,
		"missing":   0,
	} {
		if got := cgroupLimit(filepath.Join(dir, root), filepath.Join(dir, "self")); got != want {
			t.Errorf("%s: got %d, want %d", root, got, want)
		}
	}
}

// TestCollect: garbage collection is rare, but the process stays within its limit. Without a limit, it stays within
// twice the memory for messages, and 48 MiB for the program. With a small limit, garbage is collected as often as by
// default. With an embedded server and no limit, the runtime's defaults apply.
func TestCollect(t *testing.T) {
	const none, mib = math.MaxInt64, 1 << 20
	for _, tt := range []struct {
		memory   config.Memory
		embedded bool
		limit    int64
		percent  int
	}{
		{config.Memory{Runtime: none}, false, (2*100 + 48) * mib, 400},
		{config.Memory{Runtime: none}, true, none, 100},
		{config.Memory{Cgroup: 1000 * mib, Runtime: none}, false, 900 * mib, 400},
		{config.Memory{Cgroup: 1000 * mib, Runtime: none}, true, 900 * mib, 400},
		{config.Memory{Runtime: 500 * mib}, true, 500 * mib, 400},
		{config.Memory{Runtime: 256 * mib}, false, 256 * mib, 400},
		{config.Memory{Runtime: 255 * mib}, false, 255 * mib, 100},
		{config.Memory{Cgroup: 128 * mib, Runtime: none}, false, 128 * mib / 10 * 9, 100},
	} {
		if limit, percent := tt.memory.GCSettings(100*mib, tt.embedded); limit != tt.limit || percent != tt.percent {
			t.Errorf("%+v, embedded %v: %d and %d %%, want %d and %d %%", tt.memory, tt.embedded, limit, percent, tt.limit,
				tt.percent)
		}
	}
}

// TestConfigureGCEnvironment: GOGC and GOMEMLIMIT take precedence.
func TestConfigureGCEnvironment(t *testing.T) {
	const set = 1 << 40
	limit, percent := debug.SetMemoryLimit(set), debug.SetGCPercent(77)
	defer func() { debug.SetMemoryLimit(limit); debug.SetGCPercent(percent) }()
	t.Setenv("GOGC", "77")
	ConfigureGC(config.Memory{Runtime: set, Cgroup: 1 << 30}, 100<<20, false)
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("GOGC=77 is %d", got)
	}
	t.Setenv("GOGC", "")
	ConfigureGC(config.Memory{Runtime: set, Cgroup: 1 << 30}, 100<<20, false)
	if limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(77); limit != set || percent != 400 {
		t.Errorf("%d bytes and %d %%, want GOMEMLIMIT and 400 %%", limit, percent)
	}
}

// TestMemoryOfMessages checks the memory for messages: half of the limit, less the memory of the program, because
// garbage takes the other half. With an embedded server it is a quarter.
func TestMemoryOfMessages(t *testing.T) {
	const none = math.MaxInt64
	for _, tt := range []struct {
		value    string
		memory   config.Memory
		embedded bool
		want     int // in MiB
		problem  string
	}{
		{"auto", config.Memory{Runtime: none}, false, 256, ""},
		{"auto", config.Memory{Runtime: none}, true, 128, ""},
		{"auto", config.Memory{Cgroup: 1000 << 20, Runtime: none}, false, (900 - 48) / 2, ""},
		{"auto", config.Memory{Runtime: 900 << 20}, false, (900 - 48) / 2, ""},
		{"auto", config.Memory{Cgroup: 1000 << 20, Runtime: 500 << 20}, false, (500 - 48) / 2, ""},
		{"auto", config.Memory{Cgroup: 1000 << 20, Runtime: 2000 << 20}, true, (900 - 48) / 4, ""},
		{"auto", config.Memory{Cgroup: 32 << 20, Runtime: none}, false, 8, ""},
		{"auto", config.Memory{Cgroup: 64 << 30, Runtime: none}, false, 1024, ""},
		{"64MiB", config.Memory{Runtime: none}, false, 64, ""},
		{"64MiB", config.Memory{Cgroup: 1000 << 20, Runtime: none}, true, 64, ""},
		{"2GiB", config.Memory{Cgroup: 1000 << 20, Runtime: none}, false, 0,
			`DELAY_MEMORY="2GiB": want auto, or bytes such as 64MiB, 8.0 MiB to 900 MiB`},
		{"1MiB", config.Memory{Runtime: none}, false, 0, "at least 8.0 MiB"},
		{"much", config.Memory{Runtime: none}, false, 0, "at least 8.0 MiB"},
	} {
		var p problems
		got := p.memory("DELAY_MEMORY", tt.value, tt.memory, tt.embedded)
		switch err := p.err(); {
		case tt.problem != "":
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s with %+v: %v, want %s", tt.value, tt.memory, err, tt.problem)
			}
		case err != nil || got>>20 != tt.want:
			t.Errorf("%s with %+v, embedded %v: %d MiB and %v, want %d", tt.value, tt.memory, tt.embedded, got>>20, err, tt.want)
		}
	}
}
