package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestEveryGrantOfOperatorIsNeeded removes each line of the operator's permissions in turn. Then a command must fail.
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
	o := newServerWithUsers(t, without...)
	t.Setenv("DELAY_JOURNAL", "1h")
	o.must("provision") // with a journal
	lane, accepted, moved := o.storeMessages()
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
	out, _, _ := o.run("doctor", "--json", "--skip", "rights") // the error is that doctor has warnings
	for _, part := range []string{"as operator in account", "streams, limit none", "the server accepted a trial message"} {
		if !strings.Contains(out, part) {
			return fmt.Errorf("doctor does not report %q", part)
		}
	}
	return o.operatorIsRefused()
}

// storeMessages stores a message at the head of a lane with a consumer, a message that has left its first lane, a
// refused message, and two dead letters.
func (o *testServer) storeMessages() (lane, accepted, moved string) {
	t := o.t
	front := o.publish("delay.5s.orders.front", "")
	reader := jetstream.ConsumerConfig{Name: "delaybroker-x"}
	if _, err := o.js.CreateConsumer(t.Context(), front.Stream, reader); err != nil {
		t.Fatal(err)
	}
	stream, err := o.js.Stream(t.Context(), front.Stream)
	natstest.NoError(t, err)
	m, err := stream.GetMsg(t.Context(), front.Sequence)
	natstest.NoError(t, err)
	accepted = fmt.Sprintf("%s-%d-%d", front.Stream, front.Sequence, m.Time.UnixNano())
	moved = fmt.Sprintf("DELAY_INTAKE-1-%d", m.Time.UnixNano())
	hop := nats.NewMsg("delaysys.hop.1s.orders.moved")
	hop.Header = hopHeader(moved)
	if _, err := o.js.PublishMsg(t.Context(), hop); err != nil {
		t.Fatal(err)
	}
	o.storeRefused(1, "5s", "orders.x", "no stock")
	for n := range 2 {
		letter := newDeadLetter(n, "undelivered", "orders.x", "nobody listens")
		if _, err := o.js.PublishMsg(t.Context(), o.sealed(letter)); err != nil {
			t.Fatal(err)
		}
	}
	return front.Stream, accepted, moved
}

// listStreamNames sends the first request of "nats stream ls", as the operator.
func (o *testServer) listStreamNames() error {
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

// operatorReads runs the commands that change nothing. If all is set, it also runs the commands that need no further
// permissions.
func (o *testServer) operatorReads(all bool, accepted, moved string) error {
	streams, err := broker.StreamsOf(broker.Config{})
	if err == nil {
		err = streams.ReadKeys(o.t.Context(), o.js)
	}
	natstest.NoError(o.t, err)
	kitchen, err := o.nc.Subscribe("delayctl.status", func(m *nats.Msg) { // stands in for an instance
		answer := nats.NewMsg(m.Reply)
		answer.Data = []byte(`{"instance":"kitchen","lanes":[{"stream":"DELAY_1s","live":true}]}`)
		answer.Header.Set(message.HeaderSeal, streams.Policy().Keys.Seal(m.Reply, answer.Data))
		_ = o.nc.PublishMsg(answer)
	})
	natstest.NoError(o.t, err)
	err = o.wantOutput("levels --json", `"head_due"`, `"owner":"nobody"`, `"owner":"read","instance":"kitchen"`)
	if err != nil {
		return err
	}
	natstest.NoError(o.t, kitchen.Unsubscribe())
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
	if err := o.listStreamNames(); err != nil {
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

// operatorIsRefused checks that the server refuses the publishes and requests that only other users may send.
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
	natstest.NoError(t, nc.Publish(subject, nil))
	natstest.NoError(t, nc.Flush())
	err := nc.LastError() // the refusal comes before the answer to the flush
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), fmt.Sprintf("%q", subject))
}
