package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"delaybroker/broker/web"
	"delaybroker/test/natstest"
)

func TestHealthcheck(t *testing.T) {
	startBroker(t)
	for _, args := range [][]string{{"healthcheck"}, {"healthcheck", "--ready"}} {
		if got, want := mustRunCommand(t, "", args...), "ok\n"; got != want {
			t.Errorf("%q: got %q, want %q", args, got, want)
		}
	}
	got := decodeLines[web.ProbeBody](t, mustRunCommand(t, "", "healthcheck", "--ready", "--json"))
	if len(got) != 1 || got[0].Status != "ok" || len(got[0].Checks) != 7 {
		t.Errorf("got %+v, want six passing checks and the durability", got)
	}
}

// A broker that waits for its server is alive, and not ready.
func TestHealthcheckNotReady(t *testing.T) {
	externalEnv(t, fmt.Sprintf("nats://127.0.0.1:%d", freePort(t)))
	address := natstest.FreeAddress(t)
	t.Setenv("DELAY_HTTP_ADDR", strings.Replace(address, "127.0.0.1", "", 1)) // all interfaces
	r := start(t)
	defer r.stop(t)
	r.log.await(t, "a link cannot connect to NATS, and retries")
	mustRunCommand(t, "", "healthcheck")
	parts := []string{
		"/readyz", "nats: not connected: control deliver read write", "started: not all lanes are read yet",
	}
	eventually(t, "the probes of the broker", func() bool { // before, they say only that the process starts
		_, _, err := runCommand(t, "", "healthcheck", "--ready")
		return err != nil && strings.Contains(err.Error(), "nats: not connected")
	})
	wantCommandError(t, 1, parts, "healthcheck", "--ready")
	out, _, err := runCommand(t, "", "healthcheck", "--ready", "--json")
	if got := decodeLines[web.ProbeBody](t, out); err == nil || len(got) != 1 || got[0].Status != "unavailable" {
		t.Errorf("got %+v and %v, want a failing check", got, err)
	}
}

func TestHealthcheckWithoutBroker(t *testing.T) {
	natstest.ClearEnv(t)
	t.Setenv("DELAY_HTTP_ADDR", natstest.FreeAddress(t))
	wantCommandError(t, 1, []string{"connection refused"}, "healthcheck")
	t.Setenv("DELAY_HTTP_ADDR", "off")
	wantCommandError(t, 2, []string{"there are no probes"}, "healthcheck")
	t.Setenv("DELAY_HTTP_ADDR", "8422")
	wantCommandError(t, 2, []string{"host:port"}, "healthcheck")

	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	t.Setenv("DELAY_HTTP_ADDR", other.Listener.Addr().String())
	wantCommandError(t, 1, []string{"another program"}, "healthcheck")
}
