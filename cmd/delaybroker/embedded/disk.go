package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"delaybroker/broker/stats"
)

const (
	// diskRetryInterval is the interval between two attempts to write to a failed disk.
	diskRetryInterval = time.Second
	// diskTrialBytes is the number of bytes that a failed disk must accept before the server restarts. The restarted
	// server would immediately fill a smaller free space.
	diskTrialBytes = 4 << 20
	// minRestartInterval is the minimum time between two restarts of the embedded server, if its disk fills up repeatedly.
	minRestartInterval = 10 * time.Second
)

// writeFailures are parts of nats-server's log lines about a failed write. After such a line, the server does not write
// to the stream, or does not use JetStream, until it restarts.
var writeFailures = []string{"Critical write error", "will be DISABLED", "disabling JetStream"}

// disk is the state of the embedded server's directory.
type disk struct {
	dir    string
	failed chan struct{} // one slot: receives a value after a failed write

	mu  sync.Mutex // guards err
	err error      // the first failed write since the last start
}

func newDisk(dir string) *disk { return &disk{dir: dir, failed: make(chan struct{}, 1)} }

// checkLog notes the failure if a line of nats-server's log reports a failed write. It does not wait for the goroutine
// that handles the failure, since the server holds locks during the call.
func (d *disk) checkLog(line string) {
	for _, part := range writeFailures {
		if !strings.Contains(line, part) {
			continue
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.err == nil {
			d.err = errors.New(line)
		}
		select {
		case d.failed <- struct{}{}:
		default:
		}
		return
	}
}

// check returns the check for /readyz.
func (d *disk) check() stats.Check {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		detail := fmt.Sprintf("DELAY_EMBEDDED_DIR %s accepts no data, so free some space: %v", d.dir, d.err)
		return stats.Check{Name: "disk", Detail: detail}
	}
	return stats.Check{Name: "disk", OK: true}
}

// clearFailure forgets all failures so far.
func (d *disk) clearFailure() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = nil
	select {
	case <-d.failed:
	default:
	}
}

// watch restarts the server when a failed disk accepts data again: without a restart, nats-server refuses to write. It
// returns at the end of ctx, or with the error of a restart.
func (d *disk) watch(ctx context.Context, restart func() error, log *slog.Logger) error {
	var lastRestart time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.failed:
		}
		log.Error("the disk accepts no data, so the server accepts and moves no message; accepted messages are safe."+
			" Free some space, and the embedded server restarts by itself",
			"dir", d.dir, "reason", d.check().Detail)
		for lastReport := time.Now(); ; {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(diskRetryInterval):
			}
			err := d.tryWrite()
			if err == nil && time.Since(lastRestart) >= minRestartInterval {
				break
			}
			if err != nil && time.Since(lastReport) >= time.Minute {
				lastReport = time.Now()
				log.Error("the disk still accepts no data; free some space", "dir", d.dir, "err", err)
			}
		}
		log.Warn("the disk accepts data again, so the embedded server restarts", "dir", d.dir)
		if err := restart(); err != nil {
			return err
		}
		lastRestart = time.Now()
	}
}

// tryWrite returns an error if the disk accepts no data. It writes a file and removes it.
func (d *disk) tryWrite() error {
	file := filepath.Join(d.dir, "delaybroker.trial")
	return errors.Join(os.WriteFile(file, make([]byte, diskTrialBytes), 0o600), os.Remove(file))
}
