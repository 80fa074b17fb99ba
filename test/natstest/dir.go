package natstest

import (
	"os"
	"testing"
)

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
