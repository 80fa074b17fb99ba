package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// tenantsConf has the users of the documentation. The tests in test/tenants cover all of them except the operator.
const tenantsConf = "../../test/permissions/tenants.conf"

// newServerWithUsers starts a server with the users of the documentation, without some of their permissions, and with
// all streams.
func newServerWithUsers(t *testing.T, without ...natstest.Grant) *testServer {
	t.Helper()
	opts := natstest.Options(t, tenantsConf, without...)
	opts.Port = server.RANDOM_PORT
	s := startServer(t, opts)
	externalEnv(t, s.ClientURL())
	nc, err := nats.Connect(s.ClientURL(), natstest.AdminLogin())
	natstest.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	natstest.NoError(t, err)
	o := &testServer{t: t, server: s, nc: nc, js: js}
	t.Setenv("DELAY_TIMERS", "on")
	o.user("provision", "s")
	o.must("provision")
	return o
}

// user makes the following commands run as a user, with the user's own inbox prefix.
func (o *testServer) user(name, password string) {
	login(o.t, name, password)
	o.t.Setenv("DELAY_INBOX_PREFIX", "_INBOX_"+strings.TrimPrefix(name, "delay-"))
}

// context makes the following commands run with the context of a role, as in the documentation.
func (o *testServer) context(variable, role string) {
	for _, name := range []string{"NATS_USER", "NATS_PASSWORD", "DELAY_INBOX_PREFIX"} {
		o.t.Setenv(name, "")
	}
	o.t.Setenv(variable, "../../test/permissions/contexts/delay-"+role+".json")
}

// The four links have four users, each with only the permissions of the documentation. The program becomes ready and
// delivers. Doctor has no finding, except about requests that its user may not send.
func TestServeAsFourUsers(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newServerWithUsers(t)
	o.context("NATS_CONTEXT", "control")
	for _, link := range []string{"read", "write", "deliver"} {
		o.context("DELAY_"+strings.ToUpper(link)+"_CONTEXT", link)
	}
	r := startReady(t)
	defer r.stop(t)
	connections, err := o.server.Connz(&server.ConnzOptions{Username: true})
	natstest.NoError(t, err)
	users := make(map[string]string)
	for _, c := range connections.Conns {
		words := strings.Fields(c.Name)
		if len(words) > 0 {
			users[words[len(words)-1]] = c.AuthorizedUser
		}
	}
	for _, link := range []string{"read", "write", "deliver", "control"} {
		if got, want := users[link], "delay-"+link; got != want {
			t.Errorf("link %s: got user %q, want %q", link, got, want)
		}
	}
	sub := subscribe(t, o.nc, "orders.x")
	publish(t, o.js, "delay.1s.orders.x", "by four")
	wantMessage(t, sub, "by four")

	d := o.doctor()
	d.want("rights", "skipped", "the server refused requests that only doctor sends", "$JS.API.INFO")
	for _, link := range []string{"read", "write", "deliver"} {
		d.want("connection", "ok", "to "+link)
		d.want("rights", "skipped", "the permissions of the "+link+" connection are unknown")
	}
	for _, f := range d.Findings {
		// Doctor does not try to store as a user that only reads.
		if f.State == "critical" || strings.Contains(f.Detail, "delaysys") || strings.Contains(f.Detail, "_INBOX") {
			t.Errorf("got %+v", f)
		}
	}
	t.Run("is clean for each user", func(t *testing.T) {
		for _, user := range []struct{ name, rights string }{
			{"control", "the server refused requests that only doctor sends"},
			{"operator", "operator differs from the running brokers' user (delay-control, delay-deliver, " +
				"delay-read, delay-write); the user may use all commands"},
			{"page", "page differs from the running brokers' user"},
		} {
			if o.context("NATS_CONTEXT", user.name); user.name != "control" {
				for _, variable := range []string{"DELAY_READ_CONTEXT", "DELAY_WRITE_CONTEXT", "DELAY_DELIVER_CONTEXT"} {
					t.Setenv(variable, "")
				}
			}
			out, _, err := o.run("doctor", "--json", "--skip", "durability") // there is one replica
			if err != nil || !strings.Contains(out, user.rights) {
				t.Errorf("as %q: got %v, want nil and %q\n%s", user.name, err, user.rights, out)
			}
		}
	})
	t.Run("the operator follows the runbook", func(t *testing.T) {
		o.context("NATS_CONTEXT", "operator")
		for _, command := range runbook(t) {
			if words := strings.Fields(command); words[1] != "provision" { // the user provision runs this command
				out, errs, err := o.run(words[1:]...)
				// Other errors are expected: one replica, no journal, and no message with the id.
				if strings.Contains(fmt.Sprint(out, errs, err), "Violation") {
					t.Errorf("%s: %v\n%s%s", command, err, out, errs)
				}
			}
		}
	})
}

// runbook has the commands of the runbook in OPERATIONS.md.
func runbook(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("OPERATIONS.md")
	natstest.NoError(t, err)
	_, text, _ = bytes.Cut(text, []byte("## At 3 a.m."))
	text, _, _ = bytes.Cut(text, []byte("\n## "))
	for _, m := range regexp.MustCompile("`(delaybroker [^`]+)`").FindAllSubmatch(text, -1) {
		command := strings.ReplaceAll(string(m[1]), "<Delay-Id>", "DELAY_1s-1-1")
		if !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	if len(commands) < 5 {
		t.Fatalf("got %q, want the commands of the table", commands)
	}
	return commands
}

// TestDoctorOfOperatorWithoutBroker: if no broker runs, doctor does not advise a person to give their own user the
// broker's permissions.
func TestDoctorOfOperatorWithoutBroker(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := newServerWithUsers(t)
	o.user("operator", "a")
	d := o.doctor()
	d.want("rights", "ok", "operator may purge no lane, unlike a broker", "may use all commands")
	d.want("lanes", "critical", "no broker reads any of the")
}

// The permissions of a link with its own user are checked for the purpose of the link.
func TestDoctorRightsOfLinks(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, userOptions(server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"$SYS.REQ.USER.INFO", "delaysys.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_limited.>"}},
	}))
	o.must("provision")
	limited := writeFile(t, "context.json", `{"user": "limited", "password": "limited", "inbox_prefix": "_INBOX_limited"}`)
	for _, variable := range []string{"DELAY_READ_CONTEXT", "DELAY_WRITE_CONTEXT", "DELAY_DELIVER_CONTEXT"} {
		t.Setenv(variable, limited)
	}
	d := o.doctor()
	d.want("rights", "critical", "the user of the read connection lacks: ",
		"$JS.API.CONSUMER.CREATE.*.*", "$JS.API.STREAM.MSG.GET.*")
	d.want("rights", "critical", "the user of the write connection lacks: Publish to delaydead.>")
	d.want("rights", "ok", "the user of the deliver connection has all permissions that it needs")
	d.want("connection", "ok", "to read as limited in account")

	t.Setenv("DELAY_READ_CONTEXT", writeFile(t, "context.json", `{"user": "limited", "password": "wr0ng"}`))
	o.doctor().want("connection", "critical", "to read: ", "Authorization Violation")
}

func TestDoctorSkipUsage(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1")
	wantCommandError(t, 2, []string{`"--skip"`, "rights"}, "doctor", "--skip", "right")
}
