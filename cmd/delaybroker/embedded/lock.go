package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// lockFile is in the directory of the embedded server. It is never removed: otherwise two processes could hold locks on
// two files with the same name.
const lockFile = "delaybroker.lock"

// ErrLocked is returned by Start when another process has locked the directory.
var ErrLocked = errors.New("in use by another delaybroker")

// LockedBy returns the id of the process that has or had the lock, and "" if it is unknown.
func LockedBy(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, lockFile))
	pid := strings.TrimSpace(string(text))
	if n, bad := strconv.Atoi(pid); err != nil || bad != nil || n <= 0 {
		return ""
	}
	return pid
}

// lockDir locks the directory until unlock, or until the process ends. It writes the pid into the lock file, for the
// messages of other processes. It ignores an error of this write: the disk may be full, and the lock is still valid.
func lockDir(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, lockFile)
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	switch locked, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", path, err)
	case !locked:
		return nil, ErrLocked
	}
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	return func() { _ = lock.Close() }, nil
}
