package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lockFile lies in the directory of the embedded server. It stays there: removing it would let two processes hold a
// lock on two files of one name.
const lockFile = "delaybroker.lock"

// ErrLocked is returned by Start when another process holds the directory. Two servers on one store destroy it.
var ErrLocked = errors.New("in use by another delaybroker")

// LockedBy is the process that holds the directory, or held it last. It is empty when that is not known.
func LockedBy(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, lockFile))
	pid := strings.TrimSpace(string(text))
	if n, bad := strconv.Atoi(pid); err != nil || bad != nil || n <= 0 {
		return ""
	}
	return pid
}

// sign writes our pid into the lock file, for the messages of other processes. Errors are ignored, since the lock is
// held all the same: the disk may be full.
func sign(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}
