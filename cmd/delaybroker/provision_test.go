package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

func TestProvisionCreates(t *testing.T) {
	o := newTestServer(t, server.Options{})
	p := decode[inspect.ProvisionReport](t, o.must("provision", "--json"))
	if len(p.Changes) != 10 || p.Wanted != 10 || len(p.Drift) != 0 {
		t.Errorf("the first time: got %+v, want 10 changes", p)
	}
	for _, c := range p.Changes {
		if c.Action != "created" || !strings.Contains(c.Detail, "replicas 1,") {
			t.Errorf("got %+v, want the stream created with 1 replica", c)
		}
	}
	p = decode[inspect.ProvisionReport](t, o.must("provision", "--json"))
	if len(p.Changes) != 0 || len(p.Drift) != 0 {
		t.Errorf("the second time: got %+v, want nothing", p)
	}

	// When a level is removed, its subject moves to the intake.
	t.Setenv("DELAY_LEVELS", "1s")
	out := o.must("provision")
	wantParts(t, out, "DELAY_5s      changed  no longer delay.5s.>", "DELAY_INTAKE  changed  now delay.5s.>")
}

// A dry run shows the changes of the following real run, and makes none.
func TestProvisionDryRun(t *testing.T) {
	o := newTestServer(t, server.Options{})
	wantSameAsDryRun := func(when string) {
		t.Helper()
		dry := decode[inspect.ProvisionReport](t, o.must("provision", "--dry-run", "--json"))
		again := decode[inspect.ProvisionReport](t, o.must("provision", "--dry-run", "--json"))
		if !reflect.DeepEqual(dry, again) {
			t.Errorf("%s: a dry run changed something: got %+v, then %+v", when, dry, again)
		}
		real := decode[inspect.ProvisionReport](t, o.must("provision", "--json"))
		if dry.DryRun = false; !reflect.DeepEqual(dry, real) || len(real.Changes) == 0 {
			t.Errorf("%s: a dry run printed\n%+v, and the real one\n%+v", when, dry, real)
		}
	}
	out := o.must("provision", "--dry-run")
	wantParts(t, out, "DELAY_INTAKE     would be created")
	wantSameAsDryRun("first")
	o.change("DELAY_5s", func(c *jetstream.StreamConfig) { c.Duplicates = time.Second })
	t.Setenv("DELAY_LEVELS", "5s 20s")
	t.Setenv("DELAY_MAX_PENDING", "1000")
	wantSameAsDryRun("other levels and bounds")
	if out := o.must("provision", "--dry-run"); strings.Contains(out, "would be") {
		t.Errorf("got\n%s, want nothing to do", out)
	}
}

// TestProvisionReservation: if the server cannot reserve a bound in bytes, the error names the setting of the bound.
func TestProvisionReservation(t *testing.T) {
	newTestServer(t, server.Options{JetStreamMaxStore: 1 << 20})
	t.Setenv("DELAY_MAX_PENDING_BYTES", "1GiB")
	wantCommandError(t, 1, []string{"the stream reserves 1073741824 bytes", "lower DELAY_MAX_PENDING_BYTES"}, "provision")
}

func TestProvisionReportsDrift(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	o.change("DELAY_5s", func(c *jetstream.StreamConfig) { c.Duplicates = time.Second })
	wantParts(t, o.must("provision"), "differs", "duplicate_window is 1s")
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour })
	out, _, err := o.run("provision")
	if got, want := exitCode(err), 2; got != want || !strings.Contains(out, "FORBIDDEN") {
		t.Errorf("exit code: got %d, want %d, with %v\n%s", got, want, err, out)
	}
}

// Changes before a failure are shown.
func TestProvisionFailsPartly(t *testing.T) {
	o := newTestServer(t, server.Options{})
	conflict := jetstream.StreamConfig{Name: "MINE", Subjects: []string{"delayin.>"}}
	if _, err := o.js.CreateStream(t.Context(), conflict); err != nil {
		t.Fatal(err)
	}
	out, _, err := o.run("provision")
	if got, want := exitCode(err), 1; got != want || !strings.Contains(err.Error(), "DELAY_INTAKE") {
		t.Errorf("exit code: got %d, want %d, with %v", got, want, err)
	}
	wantParts(t, out, "DELAY_1s", "created")
}

// A user without the permission to create streams can serve existing ones. If one is missing, serve, provision and
// doctor name the permission.
func TestProvisionWithoutPermission(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	admin := &server.User{Username: "admin", Password: "admin"}
	limited := &server.User{
		Username: "limited", Password: "limited",
		Permissions: &server.Permissions{Publish: &server.SubjectPermission{
			Allow: []string{">"}, Deny: []string{"$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.UPDATE.>"},
		}},
	}
	s := startServer(t, server.Options{Port: server.RANDOM_PORT, Users: []*server.User{admin, limited}})
	externalEnv(t, s.ClientURL())
	o := &testServer{t: t, server: s}
	login(t, "admin", "admin")
	o.must("provision")
	login(t, "limited", "limited")
	r := startReady(t)
	o.doctor().want("rights", "ok", "all permissions that the broker needs")
	r.stop(t)
	if strings.Contains(r.log.String(), `"level":"ERROR"`) || strings.Contains(r.log.String(), "may not change") {
		t.Errorf("got errors, although all streams exist:\n%s", r.log)
	}

	_, js := connect(t, strings.Replace(s.ClientURL(), "//", "//admin:admin@", 1))
	natstest.NoError(t, js.DeleteStream(t.Context(), "DELAY_5s"))
	const right = "$JS.API.STREAM.CREATE.DELAY_5s"
	err := start(t).end(t)
	if got := exitCode(err); got != 2 || !strings.Contains(err.Error(), "missing: 1 of 10: DELAY_5s") ||
		!strings.Contains(err.Error(), "Publish to "+right) || !strings.Contains(err.Error(), "grant the broker's user") {
		t.Errorf("serve: got exit code %d with %v, want 2, the stream and the permission", got, err)
	}
	if _, _, err := o.run("provision"); exitCode(err) != 1 || !strings.Contains(err.Error(), right) {
		t.Errorf("provision: got %v, want the permission", err)
	}
	o.doctor().want("rights", "critical", "Publish to "+right)
}
