package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lockFile is in the directory of the embedded server. It is never removed: otherwise two processes could hold locks on
// two files with one name.
const lockFile = "delaybroker.lock"

// ErrLocked is returned by Start when another process has locked the directory. Two servers on one store destroy it.
var ErrLocked = errors.New("in use by another delaybroker")

// LockedBy returns the process that holds the lock, or held it last; empty if unknown.
func LockedBy(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, lockFile))
	pid := strings.TrimSpace(string(text))
	if n, bad := strconv.Atoi(pid); err != nil || bad != nil || n <= 0 {
		return ""
	}
	return pid
}

// sign writes our pid into the lock file, for the messages of other processes. It ignores errors: the disk may be full,
// and the lock holds anyway.
func sign(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}
