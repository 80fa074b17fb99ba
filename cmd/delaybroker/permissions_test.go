package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// tenantsConf has the users of the documentation. The tests in test/tenants cover all of them except the operator.
const tenantsConf = "../../test/permissions/tenants.conf"

// operateAs starts a server with the users of the documentation, without some of their permissions, and with all
// streams.
func operateAs(t *testing.T, without ...natstest.Grant) *testServer {
	t.Helper()
	opts := natstest.Options(t, tenantsConf, without...)
	opts.Port = server.RANDOM_PORT
	s := startServer(t, opts)
	externalEnv(t, s.ClientURL())
	nc, err := nats.Connect(s.ClientURL(), natstest.Everything())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	o := &testServer{t: t, server: s, nc: nc, js: js}
	t.Setenv("DELAY_TIMERS", "on")
	o.user("provision", "s")
	o.must("provision")
	return o
}

// user makes the following commands run as a user, with the user's own inbox prefix.
func (o *testServer) user(name, password string) {
	o.t.Setenv("NATS_USER", name)
	o.t.Setenv("NATS_PASSWORD", password)
	o.t.Setenv("DELAY_INBOX_PREFIX", "_INBOX_"+strings.TrimPrefix(name, "delay-"))
}

// context makes the following commands run with the context of a role, as in the documentation.
func (o *testServer) context(variable, role string) {
	for _, name := range []string{"NATS_USER", "NATS_PASSWORD", "DELAY_INBOX_PREFIX"} {
		o.t.Setenv(name, "")
	}
	o.t.Setenv(variable, "../../test/permissions/contexts/delay-"+role+".json")
}

// TestEveryGrantOfOperatorIsNeeded removes each line of the operator's permissions in turn.
func TestEveryGrantOfOperatorIsNeeded(t *testing.T) {
	t.Run("with all of them", func(t *testing.T) {
		if inOwnProcess(t) {
			return
		}
		if err := operatorWorks(t); err != nil {
			t.Error(err)
		}
	})
	grants := natstest.Grants(t, tenantsConf, "operator")
	if testing.Short() {
		grants = grants[:4]
	}
	for _, g := range grants {
		t.Run(g.List+" "+g.Subject, func(t *testing.T) {
			if inOwnProcess(t) {
				return
			}
			err := operatorWorks(t, g)
			if err == nil {
				t.Errorf("every command works without %s", g)
			}
			t.Log(err)
		})
	}
}

// operatorWorks reads everything, changes what an operator may change, and tries forbidden requests.
func operatorWorks(t *testing.T, without ...natstest.Grant) error {
	o := operateAs(t, without...)
	t.Setenv("DELAY_JOURNAL", "1h")
	o.must("provision") // with a journal
	lane, accepted, moved := o.scene()
	o.user("operator", "a")
	if err := o.operatorReads(len(without) == 0, accepted, moved); err != nil {
		return err
	}
	if err := o.operatorChanges(); err != nil {
		return err
	}
	for info := range o.js.ListStreams(t.Context()).Info() {
		if info.Config.Name != lane && info.State.Consumers > 0 {
			return fmt.Errorf("where left a consumer on %s", info.Config.Name)
		}
	}
	out, _, _ := o.run("doctor", "--json", "--skip", "rights") // it has warnings
	for _, part := range []string{"as operator in account", "streams, limit none", "the server accepted a trial message"} {
		if !strings.Contains(out, part) {
			return fmt.Errorf("doctor does not report %q", part)
		}
	}
	return o.operatorIsRefused()
}

// scene stores a message at the head of a lane with a consumer, a message that has left its first lane, a refused
// message, and two dead letters.
func (o *testServer) scene() (lane, accepted, moved string) {
	t := o.t
	front := o.publish("delay.5s.orders.front", "")
	reader := jetstream.ConsumerConfig{Name: "delaybroker-x"}
	if _, err := o.js.CreateConsumer(t.Context(), front.Stream, reader); err != nil {
		t.Fatal(err)
	}
	stream, err := o.js.Stream(t.Context(), front.Stream)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), front.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	accepted = fmt.Sprintf("%s-%d-%d", front.Stream, front.Sequence, m.Time.UnixNano())
	moved = fmt.Sprintf("DELAY_INTAKE-1-%d", m.Time.UnixNano())
	hop := nats.NewMsg("delaysys.hop.1s.orders.moved")
	hop.Header.Set("Delay-Id", moved)
	if _, err := o.js.PublishMsg(t.Context(), hop); err != nil {
		t.Fatal(err)
	}
	o.storeRefused(1, "5s", "orders.x", "no stock")
	for n := range 2 {
		letter := nats.NewMsg("delaydead.undelivered.orders.x")
		for name, value := range map[string]string{
			message.HeaderID:       fmt.Sprintf("DELAY_5s-%d-1", n),
			message.HeaderDue:      "2026-01-01T00:00:00Z",
			message.HeaderAccepted: "2026-01-01T00:00:00Z",
		} {
			letter.Header.Set(name, value)
		}
		if _, err := o.js.PublishMsg(t.Context(), o.sealed(letter)); err != nil {
			t.Fatal(err)
		}
	}
	return front.Stream, accepted, moved
}

// listsNames sends the first request of "nats stream ls", as the operator.
func (o *testServer) listsNames() error {
	nc, err := nats.Connect(o.server.ClientURL(), nats.UserInfo("operator", "a"),
		nats.CustomInboxPrefix("_INBOX_operator"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Second)
	defer cancel()
	names := js.StreamNames(ctx)
	for range names.Name() {
	}
	return names.Err()
}

// operatorReads runs the commands that change nothing. With all, it also runs the commands that need no further
// permissions.
func (o *testServer) operatorReads(all bool, accepted, moved string) error {
	streams, err := broker.StreamsOf(broker.Config{})
	if err == nil {
		err = streams.ReadKeys(o.t.Context(), o.js)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	kitchen, err := o.nc.Subscribe("delayctl.status", func(m *nats.Msg) { // stands in for an instance
		answer := nats.NewMsg(m.Reply)
		answer.Data = []byte(`{"instance":"kitchen","lanes":[{"stream":"DELAY_1s","live":true}]}`)
		answer.Header.Set(message.HeaderSeal, streams.Policy().Keys.Seal(m.Reply, answer.Data))
		_ = o.nc.PublishMsg(answer)
	})
	if err != nil {
		o.t.Fatal(err)
	}
	err = o.wantOutput("levels --json", `"head_due"`, `"owner":"nobody"`, `"owner":"read","instance":"kitchen"`)
	if err != nil {
		return err
	}
	if err := kitchen.Unsubscribe(); err != nil {
		o.t.Fatal(err)
	}
	for _, id := range []string{accepted, moved} {
		if err := o.wantOutput("where "+id+" --json", `"found":true`); err != nil {
			return err
		}
	}
	if err := o.wantOutput("retrying --json", `"waiting":1`, `"messages":1`); err != nil {
		return err
	}
	if all {
		out, _, err := o.run("ahead", "--json", "--most", "0", "--target", "orders.>")
		if err != nil || !strings.Contains(out, `"exact":true`) || strings.Contains(out, `"pending":0`) {
			return fmt.Errorf("ahead: %v", err)
		}
		if err := o.wantOutput("pending ls --target orders.>", accepted); err != nil {
			return err
		}
	}
	if err := o.wantOutput("journal --json", `"kept_seconds":3600`); err != nil {
		return err
	}
	if err := o.listsNames(); err != nil {
		return err
	}
	return o.wantOutput("dead show DELAY_5s-0-1", "orders.x")
}

// operatorChanges runs the commands that change something.
func (o *testServer) operatorChanges() error {
	timer := nats.NewMsg("delaytimer.k.orders.x")
	timer.Header.Set(message.HeaderFor, "1h")
	if _, err := o.js.PublishMsg(o.t.Context(), timer); err != nil {
		o.t.Fatal(err)
	}
	for _, act := range []struct{ verb, wantOutput string }{
		{"dead resend --id DELAY_5s-0-1", ""},
		{"dead rm --target orders.>", ""},
		{"timers ls", "orders.x"},
		{"timers cancel k orders.x", "cancelled"},
		{"schedules add s --target orders.x --every 1h --first 1h", "pending"},
		{"schedules fire s", "fired"},
		{"schedules pause s", "paused"},
		{"schedules rm s", "cancelled"},
		{"pause orders.paused", ""},
		{"pause", ""},
		{"resume orders.paused", ""},
	} {
		if err := o.wantOutput(act.verb, act.wantOutput); err != nil {
			return err
		}
	}
	if left, resent := o.messageCount("DELAY_DEAD"), o.messageCount("DELAY_RETRY_1s"); left != 0 || resent != 1 {
		return fmt.Errorf("%d dead letters left and %d resent", left, resent)
	}
	return nil
}

// wantOutput runs a command, and checks that the output contains the parts.
func (o *testServer) wantOutput(verb string, parts ...string) error {
	out, _, err := o.run(strings.Fields(verb)...)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			return fmt.Errorf("%s shows no %s", verb, part)
		}
	}
	return nil
}

// operatorIsRefused sends publishes and requests that only others may send.
func (o *testServer) operatorIsRefused() error {
	nc, err := nats.Connect(o.server.ClientURL(), nats.UserInfo("operator", "a"),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return err
	}
	defer nc.Close()
	for _, subject := range []string{
		"orders.x", "delay.1s.orders.x", "delaysys.hop.1s.orders.x",
		"$JS.API.STREAM.PURGE.DELAY_1s", "$JS.API.STREAM.UPDATE.DELAY_1s", "$JS.API.STREAM.MSG.DELETE.DELAY_1s",
		"$JS.API.STREAM.MSG.GET.ORDERS", "$JS.API.CONSUMER.CREATE.ORDERS.x", "$JS.API.CONSUMER.MSG.NEXT.ORDERS.x",
	} {
		if !refuses(o.t, nc, subject) {
			return fmt.Errorf("the operator may publish on %s", subject)
		}
	}
	return nil
}

func refuses(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	if err := nc.Publish(subject, nil); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	err := nc.LastError() // the refusal comes before the answer to the flush
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), fmt.Sprintf("%q", subject))
}

// The four links have four users, each with only the permissions of the documentation. The program becomes ready and
// delivers. Doctor has no finding, except about requests that its user may not send.
func TestServeAsFourUsers(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: -short, and it takes long")
	}
	if inOwnProcess(t) {
		return
	}
	o := operateAs(t)
	o.context("NATS_CONTEXT", "control")
	for _, link := range []string{"read", "write", "deliver"} {
		o.context("DELAY_"+strings.ToUpper(link)+"_CONTEXT", link)
	}
	r := start(t)
	r.log.await(t, "ready")
	defer r.stop(t)
	connections, err := o.server.Connz(&server.ConnzOptions{Username: true})
	if err != nil {
		t.Fatal(err)
	}
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
	d.want("rights", "skipped", "doctor may not request", "$JS.API.INFO", "the broker works without it")
	for _, link := range []string{"read", "write", "deliver"} {
		d.want("connection", "ok", "to "+link)
		d.want("rights", "ok", "to "+link+": unknown")
	}
	for _, f := range d.Findings {
		// Doctor does not try to store as a user that only reads.
		if f.State == "critical" || strings.Contains(f.Detail, "delaysys") || strings.Contains(f.Detail, "_INBOX") {
			t.Errorf("got %+v", f)
		}
	}
	t.Run("is clean for each user", func(t *testing.T) {
		for _, user := range []struct{ name, rights string }{
			{"control", "the broker works without it"},
			{"operator", "operator differs from the running brokers' user (delay-control, delay-deliver, " +
				"delay-read, delay-write), and may use all commands"},
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
			if words := strings.Fields(command); words[1] != "provision" { // a job runs it, as the user of that name
				out, errs, err := o.run(words[1:]...)
				// It warns about the single replica. There is no journal, and no such message.
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
	if err != nil {
		t.Fatal(err)
	}
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

// TestDoctorOfPersonAlone: if no broker runs, doctor does not advise a person to give their own user the broker's
// permissions.
func TestDoctorOfPersonAlone(t *testing.T) {
	if inOwnProcess(t) {
		return
	}
	o := operateAs(t)
	o.user("operator", "a")
	d := o.doctor()
	d.want("rights", "ok", "operator may not commit as brokers do", "may use all commands")
	d.want("lanes", "critical", "no broker reads any of the")
}

func TestDoctorSkipsWhatIsThere(t *testing.T) {
	externalEnv(t, "nats://127.0.0.1:1")
	wantCommandError(t, 2, []string{`"--skip"`, "rights"}, "doctor", "--skip", "right")
}

// The permissions of a link with its own user are checked for the purpose of the link.
func TestDoctorRightsOfLinks(t *testing.T) {
	natstest.Long(t)
	if inOwnProcess(t) {
		return
	}
	o := newTestServer(t, userOptions(server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"$SYS.REQ.USER.INFO", "delaysys.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_tried.>"}},
	}))
	o.must("provision")
	tried := writeFile(t, "context.json", `{"user": "tried", "password": "tried", "inbox_prefix": "_INBOX_tried"}`)
	for _, variable := range []string{"DELAY_READ_CONTEXT", "DELAY_WRITE_CONTEXT", "DELAY_DELIVER_CONTEXT"} {
		t.Setenv(variable, tried)
	}
	d := o.doctor()
	d.want("rights", "critical", "to read, refused: ", "$JS.API.CONSUMER.CREATE.*.*", "$JS.API.STREAM.MSG.GET.*")
	d.want("rights", "critical", "to write, refused: Publish to delaydead.>")
	d.want("rights", "ok", "to deliver: all permissions that it needs")
	d.want("connection", "ok", "to read as tried in account")

	t.Setenv("DELAY_READ_CONTEXT", writeFile(t, "context.json", `{"user": "tried", "password": "wr0ng"}`))
	o.doctor().want("connection", "critical", "to read: ", "Authorization Violation")
}
