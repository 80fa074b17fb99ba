package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// userOptions are a server's with a user "right" of all rights, for the test itself, and a user "tried" with some.
func userOptions(p server.Permissions) server.Options {
	return server.Options{
		NoAuthUser: "right",
		Users: []*server.User{
			{Username: "right", Password: "right"}, {Username: "tried", Password: "tried", Permissions: &p},
		},
	}
}

// userDenied are userOptions with a user "tried" who may publish on all subjects but these.
func userDenied(subjects ...string) server.Options {
	return userOptions(server.Permissions{Publish: &server.SubjectPermission{Deny: subjects}})
}

// diagnosis is what doctor printed.
type diagnosis struct {
	t        *testing.T
	State    string
	Findings []struct{ Check, State, Detail, Do string }
	code     int
}

func (o *operated) doctor() diagnosis {
	o.t.Helper()
	out, _, err := o.run("doctor", "--json")
	d := decode[diagnosis](o.t, out)
	d.t, d.code = o.t, exitCode(err)
	if want := map[string]int{"ok": 0, "warn": 1, "critical": 2}[d.State]; d.code != want {
		o.t.Errorf("exit code: got %d, want %d for %s", d.code, want, d.State)
	}
	return d
}

// want wants a finding of a check in a state that has all the parts in its detail, and says what to do if it is bad.
func (d diagnosis) want(check, state string, parts ...string) {
	d.t.Helper()
	for _, f := range d.Findings {
		has := f.Check == check && f.State == state
		for _, part := range parts {
			has = has && strings.Contains(f.Detail, part)
		}
		if has {
			if f.State != "ok" && f.Do == "" {
				d.t.Errorf("%s: no word of what to do", check)
			}
			return
		}
	}
	d.t.Errorf("got no finding %s %s %q in %+v", check, state, parts, d.Findings)
}

// wantOnly wants all other checks to be fine.
func (d diagnosis) wantOnly(bad ...string) {
	d.t.Helper()
	for _, f := range d.Findings {
		if f.State != "ok" && !strings.Contains(strings.Join(bad, " "), f.Check) {
			d.t.Errorf("got %+v, want only %q to be bad", f, bad)
		}
	}
}

// A broker that works on a single server has one weakness, which is that.
func TestDoctorFine(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.serve()
	d := o.doctor()
	d.want("durability", "warn", "1 replica of ", "DELAY_INTAKE", "power cut", "two minutes")
	d.want("storage", "ok", "a trial was accepted")
	d.want("clock", "ok", "")
	d.want("versions", "ok", server.VERSION)
	d.wantOnly("durability")

	out, _, err := o.run("doctor")
	if !errors.Is(err, errWarnings) {
		t.Errorf("got %v, want %v", err, errWarnings)
	}
	if _, shown := errors.AsType[logged](err); !shown {
		t.Errorf("got an error that would be printed below the table")
	}
	if !strings.Contains(out, "WHAT TO DO") || strings.Contains(out, "\x1b") {
		t.Errorf("got %q, want a table without colours", out)
	}
}

func TestDoctorEmbedded(t *testing.T) {
	embeddedEnv(t)
	t.Setenv("DELAY_EMBEDDED_LISTEN", natstest.FreeAddress(t))
	r := start(t)
	r.log.await(t, "ready")
	defer r.stop(t)
	out, _, err := runVerb(t, "", "doctor")
	if err != nil || !strings.Contains(out, "fsync every 1s") {
		t.Errorf("got %v, want nil, and durability in words:\n%s", err, out)
	}
}

func TestDoctorNobodyReads(t *testing.T) {
	o := operateOn(t, server.Options{})
	d := o.doctor()
	d.want("streams", "critical", "9 of 9 are missing", "DELAY_1s")
	d.wantOnly("streams")
	o.must("provision")
	d = o.doctor()
	d.want("lanes", "critical", "nobody reads any of the 6 lanes")
	d.wantOnly("lanes", "durability")
}

func TestDoctorLaneThatTheBrokerDoesNotKnow(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.serve()
	t.Setenv("DELAY_LEVELS", "1s 5s 7s")
	o.must("provision")
	o.doctor().want("lanes", "critical", "nobody reads DELAY_7s")
}

func TestDoctorDrift(t *testing.T) {
	o := operateOn(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "1s 5s 7s")
	o.must("provision")
	t.Setenv("DELAY_LEVELS", "1s 5s")
	o.must("provision")
	o.change("DELAY_5s", func(c *jetstream.StreamConfig) { c.Duplicates = time.Second })
	d := o.doctor()
	d.want("drift", "warn", "DELAY_5s", "duplicate_window is 1s")
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour })
	o.change("DELAY_7s", func(c *jetstream.StreamConfig) { c.MaxAge = 2 * time.Hour }) // it is retiring
	o.change("DELAY_RETRY_1s", func(c *jetstream.StreamConfig) { c.Metadata = nil })
	d = o.doctor()
	d.want("drift", "warn", "DELAY_5s")
	d.want("drift", "critical", "DELAY_1s", "max_age is 1h0m0s")
	d.want("drift", "critical", "DELAY_7s", "max_age is 2h0m0s")
	d.want("streams", "critical", "DELAY_RETRY_1s")
}

func TestDoctorNewerFormat(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.Metadata["delaybroker.format"] = "99" })
	o.doctor().want("streams", "warn", "DELAY_1s", "newer broker")
}

func TestDoctorBrokenMarks(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.Metadata["delaybroker.format"] = "one" })
	o.doctor().want("streams", "critical", "nobody serves DELAY_1s", `"one"`)
}

// A server whose store is full refuses what it is given. Doctor finds out without giving it anything.
func TestDoctorFullServer(t *testing.T) {
	o := operateOn(t, server.Options{JetStreamMaxStore: 256 << 10})
	o.must("provision") // and no broker, which would move messages and so free some space again
	for i := 0; ; i++ {
		_, err := o.js.Publish(t.Context(), "delay.5s.x", make([]byte, 10<<10))
		if err != nil {
			t.Log(err)
			break
		}
		if i > 100 {
			t.Fatal("the store does not fill")
		}
	}
	before := o.stored()
	d := o.doctor()
	d.want("storage", "critical", "refuse to store", "insufficient")
	if got, want := o.stored(), before; got != want {
		t.Errorf("stored messages: got %d after doctor, want %d", got, want)
	}
}

// A trial leaves nothing behind where it is accepted, either.
func TestDoctorStoresNothing(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	o.doctor().want("storage", "ok", "a trial was accepted")
	if got := o.stored(); got != 0 {
		t.Errorf("stored messages: got %d, want none", got)
	}
}

// stored is how many messages all streams have ever stored.
func (o *operated) stored() (n uint64) {
	o.t.Helper()
	list := o.js.ListStreams(o.t.Context())
	for info := range list.Info() {
		n += info.State.LastSeq
	}
	if err := list.Err(); err != nil {
		o.t.Fatal(err)
	}
	return n
}

func TestDoctorFullStreamAndAccount(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	o.change("DELAY_1s", func(c *jetstream.StreamConfig) { c.MaxBytes = 1100 })
	o.publish("delay.1s.x", strings.Repeat("x", 1040))
	limits := map[string]server.JetStreamAccountLimits{
		"": {MaxStore: 1300, MaxMemory: -1, MaxStreams: 9, MaxConsumers: -1},
	}
	if err := o.server.GlobalAccount().UpdateJetStreamLimits(limits); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DELAY_LEVELS", "1s 5s 7s 9s")
	d := o.doctor()
	d.want("storage", "critical", "DELAY_1s is full")
	d.want("storage", "warn", "of 1300 bytes")
	d.want("JetStream", "critical", "9 streams of 9 allowed, and 2 are missing")
}

func TestDoctorDeadLetters(t *testing.T) {
	o := operateOn(t, server.Options{})
	o.must("provision")
	o.publish("delaydead.bad_time", "")
	o.doctor().want("dead letters", "warn", "1 in DELAY_DEAD")
}

func TestDoctorMemoryStorage(t *testing.T) {
	o := operateOn(t, server.Options{})
	for _, cfg := range decode[[]jetstream.StreamConfig](t, o.must("streams", "--replicas", "1")) {
		if cfg.Name == "DELAY_5s" {
			cfg.Storage = jetstream.MemoryStorage
		}
		if _, err := o.js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	o.doctor().want("durability", "critical", "in memory", "DELAY_5s")
}

func TestDoctorNoRights(t *testing.T) {
	for _, test := range []struct {
		name        string
		permissions server.Permissions
		state       string
		parts       []string
	}{
		{
			"no JetStream", server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{"orders.>", "$SYS.REQ.USER.INFO"}},
			}, "critical", []string{"$JS.API.CONSUMER.CREATE.*.*", "Publish to $JS.API.STREAM.LIST,", "delaysys.>"},
		},
		{
			"not even to ask who it is", server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{"orders.>"}},
			}, "critical", []string{"Publish to $JS.API.STREAM.LIST"},
		},
		{
			"one stream", server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.PURGE.DELAY_5s"}},
			}, "critical", []string{"refused: Publish to $JS.API.STREAM.PURGE.DELAY_5s"},
		},
		{
			"no hops", server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"delaysys.>"}},
			}, "critical", []string{"refused: Publish to delaysys.>"},
		},
		{
			"no answers", server.Permissions{
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_other.>"}},
			}, "critical", []string{"Subscription to _INBOX."},
		},
		{
			"nothing of one stream", server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"$JS.API.*.*.DELAY_5s", "$JS.API.STREAM.INFO.DELAY_5s"}},
			}, "critical", []string{"Publish to $JS.API.STREAM.INFO.DELAY_5s"},
		},
		{
			"what only doctor asks", server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"$JS.API.INFO"}},
			}, "warn", []string{"$JS.API.INFO"},
		},
		{
			"all", server.Permissions{Publish: &server.SubjectPermission{Allow: []string{">"}}}, "ok", []string{"targets apart"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := operateOn(t, userOptions(test.permissions))
			o.must("provision")
			t.Setenv("NATS_USER", "tried")
			t.Setenv("NATS_PASSWORD", "tried")
			began := time.Now()
			d := o.doctor()
			d.want("rights", test.state, test.parts...)
			d.want("connection", "ok", "nats://")
			d.wantOnly("rights", "lanes", "durability")
			if took := time.Since(began); took > inspect.Patience+2*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestDoctorNoConnection(t *testing.T) {
	externalEnv(t, fmt.Sprintf("nats://127.0.0.1:%d", freePort(t)))
	o := &operated{t: t}
	d := o.doctor()
	d.want("connection", "critical", "no servers available")
	d.want("memory", "ok")
	d.wantOnly("connection")
}

func TestDoctorWrongPassword(t *testing.T) {
	s := startServer(t, server.Options{Port: server.RANDOM_PORT, Authorization: "right"})
	externalEnv(t, s.ClientURL())
	t.Setenv("NATS_TOKEN", "wr0ng")
	d := (&operated{t: t}).doctor()
	d.want("connection", "critical", "Authorization Violation")
}

func TestDoctorWithoutJetStream(t *testing.T) {
	s := startServer(t, server.Options{Port: server.RANDOM_PORT})
	externalEnv(t, s.ClientURL())
	if err := s.GlobalAccount().DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	d := (&operated{t: t}).doctor()
	d.want("JetStream", "critical", "not enabled")
}

func TestDoctorConfiguration(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1")
	t.Setenv("DELAY_LEVELS", "soon")
	_, _, err := runVerb(t, "", "doctor")
	if !errors.Is(err, errConfig) || exitCode(err) != 2 {
		t.Errorf("got %v, want a configuration error", err)
	}
}
