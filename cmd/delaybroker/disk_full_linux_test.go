package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"delaybroker/test/natstest"
)

// TestDiskFullAtStart fills the disk of the broker while messages wait, kills the broker, and starts it again. The
// broker reports the full disk and ends. When the disk has room, it delivers the accepted messages. The test needs the
// permission to mount a disk.
func TestDiskFullAtStart(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("NOT RUN: cannot mount a disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	environ := []string{
		"DELAY_EMBEDDED_LISTEN=127.0.0.1:0", "DELAY_EMBEDDED_DIR=" + dir, "DELAY_HTTP_ADDR=off", "DELAY_LEVELS=1s 5s",
	}
	broker, log := startProcess(t, environ...)
	nc, js := connect(t, log.await(t, "ready")["server"].(string))
	publish(t, js, "delay.5s.x", "accepted before")
	nc.Close()
	natstest.NoError(t, broker.Process.Kill())
	_ = broker.Wait() // the kill causes an error

	ballast := filepath.Join(dir, "ballast")
	fillDisk(t, ballast)
	broker, log = startProcess(t, environ...)
	hung := time.AfterFunc(timeout, func() { _ = broker.Process.Kill() }) // the broker should end by itself
	err := broker.Wait()
	hung.Stop()
	if code := broker.ProcessState.ExitCode(); code != 1 || err == nil {
		t.Errorf("on a full disk it ends with %v and code %d, want 1", err, code)
	}
	wantParts(t, log.String(), "DELAY_EMBEDDED_DIR "+dir+" accepts no data", "free some space")

	natstest.NoError(t, os.Remove(ballast))
	broker, log = startProcess(t, environ...)
	nc, js = connect(t, log.await(t, "ready")["server"].(string))
	sub := subscribe(t, nc, "x") // until now, the target had no subscriber and refused the message
	wantMessage(t, sub, "accepted before")
	publish(t, js, "delay.1s.x", "accepted afterwards")
	wantMessage(t, sub, "accepted afterwards")
	terminate(t, broker, log)
}

// fillDisk writes a file until the disk is full.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	natstest.NoError(t, err)
	defer f.Close()
	for _, size := range []int{64 << 10, 1} {
		part := make([]byte, size)
		for err = nil; err == nil; {
			_, err = f.Write(part)
		}
		if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, io.ErrShortWrite) {
			t.Fatal(err)
		}
	}
}
