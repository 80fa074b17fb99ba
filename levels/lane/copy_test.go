package lane

import (
	"os"
	"path/filepath"
	"testing"
)

// copyDir makes to a copy of from.
func copyDir(t *testing.T, to, from string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Clean(to), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
