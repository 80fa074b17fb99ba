package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
)

// lockFile is in the directory of the embedded server. It is never removed: otherwise two processes could hold locks on
// two files with the same name. An operator may remove it, so lockDir also locks the directory itself.
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
	// Some systems cannot lock a directory, such as Windows, where no process can remove the locked file. Then lock is
	// the only lock.
	dirLock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	unlock = func() { _, _ = dirLock.Close(), lock.Close() }
	if locked, err := dirLock.TryLock(); err == nil && !locked {
		unlock()
		return nil, ErrLocked
	}
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	return unlock, nil
}

// checkLayout returns an error if dir is not the directory of a server, but the store inside it, with a directory for
// each account. Otherwise nats-server would move these directories into dir/jetstream, even while another server uses
// them, and that server would lose all its streams.
func checkLayout(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == server.JetStreamStoreDir {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, entry.Name(), "streams")); err == nil {
			return fmt.Errorf("it has the streams of a server in %s; that server's directory is the one above",
				entry.Name())
		}
	}
	return nil
}
