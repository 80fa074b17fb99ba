package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDiskFullAtStart fills a disk of its own while messages wait, kills the broker, and starts it again: it says that
// the disk is full, and ends. With room again it delivers what was accepted. It needs the right to mount a disk.
func TestDiskFullAtStart(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: -short, and it mounts a disk")
	}
	if apart(t) {
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("NOT RUN: no disk of its own: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	start := func() (*exec.Cmd, *logReader) {
		broker := command(t, nil, "DELAY_EMBEDDED_LISTEN=127.0.0.1:0", "DELAY_EMBEDDED_DIR="+dir, "DELAY_HTTP_ADDR=off",
			"DELAY_LEVELS=1s 5s")
		log := newLogReader()
		broker.Stderr = log
		if err := broker.Start(); err != nil {
			t.Fatal(err)
		}
		return broker, log
	}
	broker, log := start()
	nc, js := connect(t, log.await(t, "ready")["server"].(string))
	publish(t, js, "delay.5s.x", "accepted before")
	nc.Close()
	if err := broker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = broker.Wait() // it was killed

	ballast := filepath.Join(dir, "ballast")
	fill(t, ballast)
	broker, log = start()
	hung := time.AfterFunc(timeout, func() { _ = broker.Process.Kill() }) // of one that runs
	err := broker.Wait()
	hung.Stop()
	if code := broker.ProcessState.ExitCode(); code != 1 || err == nil {
		t.Errorf("on a full disk it ends with %v and code %d, want 1", err, code)
	}
	for _, want := range []string{"DELAY_EMBEDDED_DIR " + dir + " accepts no data", "free some space"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it says %s, want %q in it", log, want)
		}
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	broker, log = start()
	nc, js = connect(t, log.await(t, "ready")["server"].(string))
	sub := subscribe(t, nc, "x") // before, nobody listened, and it was refused
	wantGoesOn(t, broker, log, js, sub)
}

// fill writes a file until its disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
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
