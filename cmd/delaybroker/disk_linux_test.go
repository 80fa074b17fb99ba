package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"delaybroker/test/natstest"
)

// TestDiskFull makes the writes of the embedded server fail, by a limit on the size of its files. For nats-server this
// is a full disk, and the limit needs no permission. The broker names the remedy, and is not ready. When the limit is
// removed, the broker continues by itself, with every accepted message.
func TestDiskFull(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	dir, probes := t.TempDir(), natstest.FreeAddress(t)
	broker, log := startProcess(t,
		"DELAY_EMBEDDED_LISTEN=127.0.0.1:0", "DELAY_EMBEDDED_DIR="+dir, "DELAY_HTTP_ADDR="+probes, "DELAY_LEVELS=1s 5s")
	url := log.await(t, "ready")["server"].(string)
	nc, js := connect(t, url)
	sub := subscribe(t, nc, "x")
	publish(t, js, "delay.5s.x", "accepted before")
	limit := func(bytes uint64) {
		limits := &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
		natstest.NoError(t, unix.Prlimit(broker.Process.Pid, unix.RLIMIT_FSIZE, limits, nil))
	}
	limit(64 << 10)
	full := fmt.Sprintf("%0*d", 100<<10, 0)
	msg := &nats.Msg{Subject: "delay.5s.x", Data: []byte(full)}
	if _, err := js.PublishMsg(t.Context(), msg, jetstream.WithRetryAttempts(0)); err == nil {
		t.Error("a full disk acknowledged a message")
	}
	line := log.await(t, "the disk accepts no data, so the server accepts and moves no message; "+
		"accepted messages are safe. Free some space, and the embedded server restarts by itself")
	if line["dir"] != dir || line["level"] != "ERROR" {
		t.Errorf("got %v, want an error with %s", line, dir)
	}
	wantFullDiskReported(t, url, probes, dir)

	limit(unix.RLIM_INFINITY)
	log.await(t, "the disk accepts data again, so the embedded server restarts")
	eventually(t, "readiness", func() bool {
		body := bodyOf(t, probes, "/readyz")
		return strings.Contains(body, `"ok"`) && !strings.Contains(body, `false`)
	})
	wantMessage(t, sub, "accepted before")
	publish(t, js, "delay.1s.x", "accepted afterwards")
	wantMessage(t, sub, "accepted afterwards")
	terminate(t, broker, log)
}

// wantFullDiskReported checks that the probes and doctor name the remedy, once.
func wantFullDiskReported(t *testing.T, url, probes, dir string) {
	t.Helper()
	wantProbe(t, probes, "/healthz", 200)
	if got := bodyOf(t, probes, "/readyz"); !strings.Contains(got, dir) || !strings.Contains(got, "free some space") {
		t.Errorf("got readiness %s, want the remedy", got)
	}
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", url)
	t.Setenv("DELAY_HTTP_ADDR", probes)
	d := (&testServer{t: t}).doctor()
	d.want("storage", "critical", "reports: ", dir, "accepts no data")
	for _, f := range d.Findings {
		reported := f.Check == "ready" || f.Check == "storage" && f.State == "ok" // a second finding with the same cause
		if reported || strings.Contains(f.Do, "restart the broker") {
			t.Errorf("got %+v while the disk is full", f)
		}
	}
}
