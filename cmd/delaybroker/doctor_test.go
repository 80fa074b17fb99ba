package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/stats"
	"delaybroker/broker/web"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/test/natstest"
)

// userOptions returns the options of a server with two users: "full", with all permissions, for the test itself, and
// "limited", with some.
func userOptions(p server.Permissions) server.Options {
	return server.Options{
		NoAuthUser: "full",
		Users: []*server.User{
			{Username: "full", Password: "full"}, {Username: "limited", Password: "limited", Permissions: &p},
		},
	}
}

// userDenied returns userOptions in which "limited" may publish to all subjects except these.
func userDenied(subjects ...string) server.Options {
	return userOptions(server.Permissions{Publish: &server.SubjectPermission{Deny: subjects}})
}

// diagnosis is the output of doctor.
type diagnosis struct {
	t        *testing.T
	State    string
	Findings []struct{ Check, State, Detail, Do string }
	code     int
}

func (o *testServer) doctor() diagnosis {
	o.t.Helper()
	out, _, err := o.run("doctor", "--json")
	d := decode[diagnosis](o.t, out)
	d.t, d.code = o.t, exitCode(err)
	if want := map[string]int{"ok": 0, "warn": 1, "critical": 2}[d.State]; d.code != want {
		o.t.Errorf("exit code: got %d, want %d for %s", d.code, want, d.State)
	}
	return d
}

// want checks that a check has a finding in this state, with all parts in its detail, and with advice unless the state
// is ok.
func (d diagnosis) want(check, state string, parts ...string) {
	d.t.Helper()
	for _, f := range d.Findings {
		has := f.Check == check && f.State == state
		for _, part := range parts {
			has = has && strings.Contains(f.Detail, part)
		}
		if has {
			if f.State != "ok" && f.Do == "" {
				d.t.Errorf("%s: the advice is missing", check)
			}
			return
		}
	}
	d.t.Errorf("got no finding %s %s %q in %+v", check, state, parts, d.Findings)
}

// wantOnly fails if a check that is not in bad has a problem.
func (d diagnosis) wantOnly(bad ...string) {
	d.t.Helper()
	for _, f := range d.Findings {
		if f.State != "ok" && !strings.Contains(strings.Join(bad, " "), f.Check) {
			d.t.Errorf("got %+v, want all except %q to be ok", f, bad)
		}
	}
}

// A broker on a single server has one finding: there is one replica.
func TestDoctorFine(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	o.serve()
	d := o.doctor()
	d.want("durability", "warn", "1 replica of all ", "power cut", "two minutes")
	d.want("storage", "ok", "the server accepted a trial message")
	d.want("clock", "ok", "")
	d.want("versions", "ok", server.VERSION)
	d.wantOnly("durability")

	out, _, err := o.run("doctor")
	if !errors.Is(err, errWarnings) {
		t.Errorf("got %v, want %v", err, errWarnings)
	}
	if _, shown := errors.AsType[reportedError](err); !shown {
		t.Errorf("got an error that would be printed below the table")
	}
	if !strings.Contains(out, "\n              do     ") || strings.Contains(out, "\x1b") {
		t.Errorf("got %q, want the advice, without colours", out)
	}
	for line := range strings.Lines(out) { // a long finding has several lines
		if n := len(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("got a line of %d characters, want at most 80: %q", n, line)
		}
	}
}

func TestDoctorEmbedded(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	embeddedEnv(t)
	t.Setenv("DELAY_EMBEDDED_LISTEN", natstest.FreeAddress(t))
	r := startReady(t)
	defer r.stop(t)
	out, _, err := runCommand(t, "", "doctor")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "fsync every 1s") {
		t.Errorf("got %v, want nil and the text of the durability:\n%s", err, out)
	}
}

func TestDoctorNoConnection(t *testing.T) {
	externalEnv(t, fmt.Sprintf("nats://127.0.0.1:%d", freePort(t)))
	o := &testServer{t: t}
	d := o.doctor()
	d.want("connection", "critical", "no servers available")
	d.want("memory", "ok")
	d.wantOnly("connection")
}

func TestDoctorNamesMisspeltSettings(t *testing.T) {
	externalEnv(t, fmt.Sprintf("nats://127.0.0.1:%d", freePort(t)))
	t.Setenv("DELAY_LEVEL", "1s")
	(&testServer{t: t}).doctor().want("settings", "warn",
		"DELAY_LEVEL is not a setting and is ignored; did you mean DELAY_LEVELS?")
}

func TestDoctorWrongPassword(t *testing.T) {
	s := startServer(t, server.Options{Port: server.RANDOM_PORT, Authorization: "right"})
	externalEnv(t, s.ClientURL())
	t.Setenv("NATS_TOKEN", "wr0ng")
	d := (&testServer{t: t}).doctor()
	d.want("connection", "critical", "Authorization Violation")
}

func TestDoctorConfiguration(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1")
	t.Setenv("DELAY_LEVELS", "soon")
	_, _, err := runCommand(t, "", "doctor")
	if !errors.Is(err, settings.ErrConfig) || exitCode(err) != 2 {
		t.Errorf("got %v, want a configuration error", err)
	}
}

// If the broker on this host is not ready, doctor asks the broker again before it reports a problem, since the broker
// may be starting. Doctor checks separately whether the broker's loops run, because a restart repairs a stuck loop.
func TestDoctorAsksTheBrokerOnThisHost(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, server.Options{})
	o.serve()
	for _, test := range []struct {
		name  string
		ready func(n int) stats.Check
		alive stats.Check
		state string
		says  string
	}{
		{
			"well", func(int) stats.Check { return stats.Check{Name: "started", OK: true} },
			stats.Check{OK: true}, "ok", "",
		},
		{
			"starting", func(n int) stats.Check { return stats.Check{Name: "started", OK: n > 2} },
			stats.Check{OK: true}, "ok", "",
		},
		{
			"not ready", func(int) stats.Check { return stats.Check{Name: "started", Detail: "not all lanes"} },
			stats.Check{OK: true}, "critical", "started: not all lanes",
		},
		{
			"stuck", func(int) stats.Check { return stats.Check{Name: "started", OK: true} },
			stats.Check{Name: "engine", Detail: "a loop is stuck"}, "critical",
			"the broker is stuck: engine: a loop is stuck",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			requests := 0
			probes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/healthz" {
					_ = json.NewEncoder(w).Encode(web.ProbeBody{Checks: []stats.Check{test.alive}})
					return
				}
				requests++
				_ = json.NewEncoder(w).Encode(web.ProbeBody{Checks: []stats.Check{test.ready(requests)}})
			}))
			defer probes.Close()
			t.Setenv("DELAY_HTTP_ADDR", probes.Listener.Addr().String())
			d := (&testServer{t: t}).doctor()
			d.want("ready", test.state, test.says)
		})
	}
}
