package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"delaybroker/test/natstest"
)

// TestDiskFull makes the writes of the embedded server fail, by a limit on the size of its files: to nats-server that
// is a full disk, and the limit needs no rights. The broker says what to do, and is not ready. When there is room
// again, it works on by itself, with every message that was accepted.
func TestDiskFull(t *testing.T) {
	natstest.Long(t)
	if apart(t) {
		return
	}
	dir, probes := t.TempDir(), natstest.FreeAddress(t)
	broker := command(t, nil,
		"DELAY_EMBEDDED_LISTEN=127.0.0.1:0",
		"DELAY_EMBEDDED_DIR="+dir,
		"DELAY_HTTP_ADDR="+probes,
		"DELAY_LEVELS=1s 5s",
	)
	log := newLogReader()
	broker.Stderr = log
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	url := log.await(t, "ready")["server"].(string)
	nc, js := connect(t, url)
	sub := subscribe(t, nc, "x")
	publish(t, js, "delay.5s.x", "accepted before")
	limit := func(bytes uint64) {
		limits := &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
		if err := unix.Prlimit(broker.Process.Pid, unix.RLIMIT_FSIZE, limits, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(64 << 10)
	full := fmt.Sprintf("%0*d", 100<<10, 0)
	msg := &nats.Msg{Subject: "delay.5s.x", Data: []byte(full)}
	if _, err := js.PublishMsg(t.Context(), msg, jetstream.WithRetryAttempts(0)); err == nil {
		t.Error("a full disk acknowledged a message")
	}
	said := log.await(t, "the disk accepts no data, so the server accepts and moves no message; "+
		"accepted messages are safe. Free some space, and the embedded server restarts by itself")
	if said["dir"] != dir || said["level"] != "ERROR" {
		t.Errorf("got %v, want an error that names %s", said, dir)
	}
	wantFullDiskTold(t, url, probes, dir)

	limit(unix.RLIM_INFINITY)
	log.await(t, "the disk accepts data again; restarting the embedded server")
	eventually(t, "readiness", func() bool {
		body := bodyOf(t, probes, "/readyz")
		return strings.Contains(body, `"ok"`) && !strings.Contains(body, `false`)
	})
	wantGoesOn(t, broker, log, js, sub)
}

// wantGoesOn wants a broker with room again to deliver what it accepted before and what it accepts now, and to stop
// cleanly.
func wantGoesOn(t *testing.T, broker *exec.Cmd, log *logReader, js jetstream.JetStream, sub *nats.Subscription) {
	t.Helper()
	wantMessage(t, sub, "accepted before")
	publish(t, js, "delay.1s.x", "accepted afterwards")
	wantMessage(t, sub, "accepted afterwards")
	if err := broker.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := broker.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0:\n%s", err, log)
	}
}

// wantFullDiskTold wants the probes and doctor to say what to do, once.
func wantFullDiskTold(t *testing.T, url, probes, dir string) {
	t.Helper()
	wantProbe(t, probes, "/healthz", 200)
	if got := bodyOf(t, probes, "/readyz"); !strings.Contains(got, dir) || !strings.Contains(got, "free some space") {
		t.Errorf("got readiness %s, want what to do", got)
	}
	natstest.ClearEnv(t)
	t.Setenv("NATS_URL", url)
	t.Setenv("DELAY_HTTP_ADDR", probes)
	d := (&operated{t: t}).doctor()
	d.want("storage", "critical", "reports: ", dir, "accepts no data")
	for _, f := range d.Findings {
		told := f.Check == "ready" || f.Check == "storage" && f.State == "ok" // a second finding for one cause
		if told || strings.Contains(f.Do, "restart the broker") {
			t.Errorf("got %+v while the disk is full", f)
		}
	}
}
