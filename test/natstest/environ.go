package natstest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// ClearEnv unsets the environment variables with settings of the broker, until the test ends.
func ClearEnv(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "DELAY_") || strings.HasPrefix(name, "NATS_") {
			t.Setenv(name, "") // restores the variable when the test ends
			os.Unsetenv(name)
		}
	}
}

// SkipShort skips the test when go test runs with -short. Tests that take more than some seconds of processor time call
// SkipShort.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN: -short leaves out tests that take long")
	}
}

// memoryDir is the directory of a file system in memory, or empty if there is none with room for the data of all
// servers. The server of each test creates many small files: on a disk, they take a fifth of the processor time of all
// tests.
var memoryDir string

// Dir returns a directory for a server's data, which is removed when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	if memoryDir == "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memoryDir, "natstest")
	NoError(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the server's data: %v", err)
		}
	})
	return dir
}

// Heap returns the number of bytes in use on the heap, without garbage.
func Heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Tool returns the path of a program that .ci/run builds before the tests, in the directory that TEST_TOOLS names.
// Without that directory, Tool skips the test: the build of such a program takes minutes, and needs modules that the
// project does not have.
func Tool(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("TEST_TOOLS")
	if dir == "" {
		t.Skipf("NOT RUN: .ci/run builds %s, and sets TEST_TOOLS", name)
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	NoError(t, err)
	return path
}
