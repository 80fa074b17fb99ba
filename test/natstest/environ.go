package natstest

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// ClearEnv clears the environment variables with settings of the broker, until the test ends.
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

// Long skips the test when go test runs with -short. Tests that take more than some seconds of processor time call it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN: -short leaves out tests that take long")
	}
}

// memory is the folder of a file system in memory with room for the data of all servers, or empty. The server of each
// test creates many small files: on a disk, these are a fifth of the processor time of all tests.
var memory string

// Dir returns a directory for a server's data, which is removed when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	if memory == "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "natstest")
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
