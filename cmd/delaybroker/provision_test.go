package main

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
)

func TestProvisionCreates(t *testing.T) {
	o := operateOn(t, server.Options{})
	p := decode[inspect.Provisioned](t, o.must("provision", "--json"))
	if len(p.Changes) != 8 || p.Wanted != 8 || len(p.Drift) != 0 {
		t.Errorf("the first time: got %+v, want 8 changes", p)
	}
	for _, c := range p.Changes {
		if c.Did != "created" || !strings.Contains(c.Detail, "replicas 1,") {
			t.Errorf("got %+v, want it created with replicas 1", c)
		}
	}
	p = decode[inspect.Provisioned](t, o.must("provision", "--json"))
	if len(p.Changes) != 0 || len(p.Drift) != 0 {
		t.Errorf("the second time: got %+v, want nothing", p)
	}

	// The subject of a level that goes passes to the intake.
	t.Setenv("DELAY_LEVELS", "1s")
	out := o.must("provision")
	for _, want := range []string{"DELAY_5s      changed  no longer delay.5s.>", "DELAY_INTAKE  changed  now delay.5s.>"} {
		if !strings.Contains(out, want) {
			t.Errorf("got no %q in\n%s", want, out)
		}
	}
}

func TestProvisionReportsDrift(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	o.change("DELAY_5s", func(c *jetstream.StreamConfig) { c.Duplicates = time.Second })
	if out := o.must("provision"); !strings.Contains(out, "differs") || !strings.Contains(out, "duplicate_window is 1s") {
		t.Errorf("got no word of it in\n%s", out)
	}
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour })
	out, _, err := o.run("provision")
	if got, want := exitCode(err), 2; got != want || !strings.Contains(out, "FORBIDDEN") {
		t.Errorf("exit code: got %d, want %d, with %v\n%s", got, want, err, out)
	}
}

// What was done before a failure is shown.
func TestProvisionFailsHalfWay(t *testing.T) {
	o := operateOn(t, server.Options{})
	if _, err := o.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "MINE", Subjects: []string{"delayin.>"}}); err != nil {
		t.Fatal(err)
	}
	out, _, err := o.run("provision")
	if got, want := exitCode(err), 1; got != want || !strings.Contains(err.Error(), "DELAY_INTAKE") {
		t.Errorf("exit code: got %d, want %d, with %v", got, want, err)
	}
	if !strings.Contains(out, "DELAY_1s") || !strings.Contains(out, "created") {
		t.Errorf("got no word of what was created in\n%s", out)
	}
}
