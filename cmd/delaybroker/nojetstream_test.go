package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/test/natstest"
)

// coreServer starts a nats-server without JetStream.
func coreServer(t *testing.T) *server.Server {
	t.Helper()
	return natstest.RunWith(t, server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT}).Server()
}

// Without JetStream, every command reports that, and nothing misleading.
func TestWithoutJetStream(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	externalEnv(t, coreServer(t).ClientURL())
	const off = "JetStream is off: start nats-server with -js"
	for _, args := range [][]string{
		{"provision"},
		{"provision", "--json"},
		{"levels"},
		{"where", "DELAY_5s-1-1"},
		{"dead", "ls"},
		{"pub", "a", "b", "--in", "5s"},
		{"pub", "a", "b", "--level", "5s"},
	} {
		out, _, err := runCommand(t, "", args...)
		if got := exitCode(err); got != 1 || !strings.Contains(fmt.Sprint(err), off) {
			t.Errorf("%q: got exit code %d with %v, want 1 and that JetStream is off", args, got, err)
		}
		if out != "" {
			t.Errorf("%q: got %q, want only the error", args, out)
		}
	}
	d := (&testServer{t: t}).doctor()
	d.want("JetStream", "critical", "not enabled")
	for _, f := range d.Findings {
		if f.Check == "JetStream" && !strings.Contains(f.Do, "start nats-server with -js") {
			t.Errorf("got %+v, want the advice", f)
		}
	}
}

// Serve waits for JetStream. It logs that once, and again every ten seconds.
func TestServeWithoutJetStream(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	externalEnv(t, coreServer(t).ClientURL())
	r := start(t)
	r.log.await(t, "JetStream is off: start nats-server with -js, or enable it for this account; will retry")
	time.Sleep(3 * time.Second)
	r.stop(t)
	if n := strings.Count(r.log.String(), "JetStream is off"); n != 1 {
		t.Errorf("logged %d times in three seconds, want once:\n%s", n, r.log)
	}
}

// Wrong arguments are reported before the first request.
func TestPubChecksBeforeItConnects(t *testing.T) {
	externalEnv(t, fmt.Sprintf("nats://127.0.0.1:%d", freePort(t)))
	for _, test := range []struct{ args, want string }{
		{"pub a b --in 500d", "more than 366d ahead (DELAY_MAX_DELAY)"},
		{"pub a b --at 2999-01-01T00:00:00Z", "more than 366d ahead (DELAY_MAX_DELAY)"},
		{"pub a b --at tomorrow", "--at"},
		{"pub a b --level soon", "soon"},
		{"pub a.* b --in 1s", "wildcard"},
		{"pub a b --in 1s -H Delay-Untill:5", "Delay-Untill"},
		{"pub a b --in 1s -H Delay-Expires:never", "Delay-Expires"},
	} {
		wantCommandError(t, 2, []string{test.want}, strings.Fields(test.args)...)
	}
	t.Setenv("DELAY_TARGETS", "orders.>")
	wantCommandError(t, 2, []string{"DELAY_TARGETS"}, "pub", "mail.send", "b", "--in", "1s")
	t.Setenv("DELAY_MAX_DELAY", "1000d")
	wantCommandError(t, 1, []string{"connect to NATS"}, "pub", "orders.x", "b", "--in", "500d")
}

// An unescaped @ in the password changes the host of the URL, which then has a part of the password. No error shows
// that part.
func TestPasswordWithUnescapedAt(t *testing.T) {
	natstest.ClearEnv(t)
	for _, url := range []string{
		"nats://me:p@s3cret/word@127.0.0.1:4222",
		"nats://me:p@s3cret?x@127.0.0.1",
		"nats://me:p@s3cret#x@127.0.0.1",
	} {
		t.Setenv("NATS_URL", url)
		for _, args := range [][]string{{"levels"}, {"sub", "x"}, {"serve"}} {
			_, errs, err := runCommand(t, "", args...)
			output := errs + fmt.Sprint(err)
			if got := exitCode(err); got != 2 || strings.Contains(output, "s3cret") || !strings.Contains(output, "%40 for @") {
				t.Errorf("%q with %s: got exit code %d with %v %s, want 2, the right spelling, and no part of the value",
					args, url, got, err, errs)
			}
		}
	}
}

// A second start on a host reports the port, and the program that uses the port.
func TestSecondStart(t *testing.T) {
	embeddedEnv(t)
	probes := natstest.FreeAddress(t)
	t.Setenv("DELAY_HTTP_ADDR", probes)
	first := startReady(t)
	defer first.stop(t)
	err := start(t).end(t)
	for _, want := range []string{probes + " is in use by delaybroker (pid ", "set another address, or off"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	t.Setenv("DELAY_HTTP_ADDR", "off")
	if err := start(t).end(t); err == nil || !strings.Contains(err.Error(), "in use by another delaybroker (pid ") {
		t.Errorf("without HTTP: got %v, want the process", err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0") // a listener that is not a broker
	natstest.NoError(t, err)
	defer l.Close()
	t.Setenv("DELAY_HTTP_ADDR", l.Addr().String())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	if err := start(t).end(t); err == nil || strings.Contains(err.Error(), " in use by ") {
		t.Errorf("the port of another program: got %v, want only that it is in use", err)
	}
}
