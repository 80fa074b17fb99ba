package main

import (
	"context"
	"errors"
	"fmt"
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

// The users of the documentation. All of them but the operator are tested in package test.
const tenantsConf = "../../test/permissions/tenants.conf"

// operateAs starts a server with the users of the documentation, some of their rights taken away, and all streams.
func operateAs(t *testing.T, without ...natstest.Grant) *operated {
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
	o := &operated{t: t, server: s, nc: nc, js: js}
	t.Setenv("DELAY_TIMERS", "on")
	o.user("provision", "s")
	o.must("provision")
	return o
}

// user runs the following verbs as a user, with an inbox prefix of its own.
func (o *operated) user(name, password string) {
	o.t.Setenv("NATS_USER", name)
	o.t.Setenv("NATS_PASSWORD", password)
	o.t.Setenv("DELAY_INBOX_PREFIX", "_INBOX_"+strings.TrimPrefix(name, "delay-"))
}

// context runs the following verbs with the context of a role, as it is shipped.
func (o *operated) context(variable, role string) {
	for _, name := range []string{"NATS_USER", "NATS_PASSWORD", "DELAY_INBOX_PREFIX"} {
		o.t.Setenv(name, "")
	}
	o.t.Setenv(variable, "../../test/permissions/contexts/delay-"+role+".json")
}

// TestEveryGrantOfOperatorIsNeeded takes each line out of the operator's permissions in turn.
func TestEveryGrantOfOperatorIsNeeded(t *testing.T) {
	t.Run("with all of them", func(t *testing.T) {
		if apart(t) {
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
			if apart(t) {
				return
			}
			err := operatorWorks(t, g)
			if err == nil {
				t.Errorf("nothing breaks without %s", g)
			}
			t.Log(err)
		})
	}
}

// operatorWorks looks at everything there is, changes what an operator may, and tries what is not allowed.
func operatorWorks(t *testing.T, without ...natstest.Grant) error {
	o := operateAs(t, without...)
	t.Setenv("DELAY_JOURNAL", "1h")
	o.must("provision") // and a journal
	lane, accepted, moved := o.scene()
	o.user("operator", "a")
	if err := o.operatorLooks(len(without) == 0, accepted, moved); err != nil {
		return err
	}
	if err := o.operatorActs(); err != nil {
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
			return fmt.Errorf("doctor does not say %q", part)
		}
	}
	return o.operatorIsRefused()
}

// scene has a message in front of a lane with a consumer, one that has moved on, one that was refused, and two dead
// letters.
func (o *operated) scene() (lane, accepted, moved string) {
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
	o.waits(1, "5s", "orders.x", "no stock")
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
func (o *operated) listsNames() error {
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

// operatorLooks runs the verbs that change nothing. Those that need no more rights than the others are run with all.
func (o *operated) operatorLooks(all bool, accepted, moved string) error {
	streams, err := broker.StreamsOf(broker.Config{})
	if err == nil {
		err = streams.ReadKeys(o.t.Context(), o.js)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	kitchen, err := o.nc.Subscribe("delayctl.status", func(m *nats.Msg) { // in place of an instance
		answer := nats.NewMsg(m.Reply)
		answer.Data = []byte(`{"instance":"kitchen","lanes":[{"stream":"DELAY_1s","live":true}]}`)
		answer.Header.Set(message.HeaderSeal, streams.Policy().Keys.Seal(m.Reply, answer.Data))
		_ = o.nc.PublishMsg(answer)
	})
	if err != nil {
		o.t.Fatal(err)
	}
	err = o.says("levels --json", `"head_due"`, `"owner":"nobody"`, `"owner":"read","instance":"kitchen"`)
	if err != nil {
		return err
	}
	if err := kitchen.Unsubscribe(); err != nil {
		o.t.Fatal(err)
	}
	for _, id := range []string{accepted, moved} {
		if err := o.says("where "+id+" --json", `"found":true`); err != nil {
			return err
		}
	}
	if err := o.says("retrying --json", `"waiting":1`, `"messages":1`); err != nil {
		return err
	}
	if all {
		out, _, err := o.run("ahead", "--json", "--most", "0", "--target", "orders.>")
		if err != nil || !strings.Contains(out, `"exact":true`) || strings.Contains(out, `"pending":0`) {
			return fmt.Errorf("ahead: %v", err)
		}
		if err := o.says("pending ls --target orders.>", accepted); err != nil {
			return err
		}
	}
	if err := o.says("journal --json", `"kept_seconds":3600`); err != nil {
		return err
	}
	if err := o.listsNames(); err != nil {
		return err
	}
	return o.says("dead show DELAY_5s-0-1", "orders.x")
}

// operatorActs runs the verbs that change something.
func (o *operated) operatorActs() error {
	timer := nats.NewMsg("delaytimer.k.orders.x")
	timer.Header.Set(message.HeaderFor, "1h")
	if _, err := o.js.PublishMsg(o.t.Context(), timer); err != nil {
		o.t.Fatal(err)
	}
	for _, act := range []struct{ verb, says string }{
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
		if err := o.says(act.verb, act.says); err != nil {
			return err
		}
	}
	if left, resent := o.held("DELAY_DEAD"), o.held("DELAY_RETRY_1s"); left != 0 || resent != 1 {
		return fmt.Errorf("%d dead letters left and %d resent", left, resent)
	}
	return nil
}

// says runs a command, and wants some parts in its output.
func (o *operated) says(verb string, parts ...string) error {
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

// operatorIsRefused makes publishes and requests that only others may make.
func (o *operated) operatorIsRefused() error {
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
			return fmt.Errorf("it may publish on %s", subject)
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
