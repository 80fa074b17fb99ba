package tenants

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/timer/change"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// victimKey and victimTarget identify the timer of the tenant orders, which the tenant payments attacks. The attacker
// knows the key and the target.
const victimKey, victimTarget = "order-42", "orders.core.x"

// attackTimer attacks a timer whose subject a tenant knows. If the tenant has a stream EVIL, attackTimer redirects its
// messages. attackTimer ignores errors, since the victim's state shows the result.
func attackTimer(c *harness.Client, generation uint64) {
	timer := "delaytimer." + victimKey + "." + victimTarget
	publish := func(subject, reply, body string, headers ...string) {
		m := harness.NewMsg(subject, body, headers...)
		m.Reply = reply
		_ = c.NC.PublishMsg(m)
	}
	is := fmt.Sprint(generation)
	for _, subject := range []string{timer, "delaytimer." + victimKey + ".core.x"} {
		publish(subject, "", "evil", "Delay-For", "1s")
		publish(subject, "", "", "Delay-Cancel", "evil")
		publish(subject, "", "", "Delay-Cancel", "evil", "Nats-Expected-Last-Subject-Sequence", is)
		publish(subject, "", "evil", "Delay-Fired", is+" me")
		publish(subject, "", "", "Nats-Rollup", "sub")
	}
	for _, verb := range []string{"get", "cancel", "move", "fire"} {
		publish("delayctl.timer."+verb+"."+victimKey+"."+victimTarget, "_INBOX_payments.x", `{"for":"1s"}`)
		publish("delayctl.timer."+verb+"."+victimKey+".core.x", "_INBOX_payments.x", "")
	}
	for _, target := range []string{victimTarget, "core.x"} {
		publish("delayctl.timer.set."+victimKey+"."+target, "_INBOX_payments.x", "evil", "Delay-For", "1s")
	}
	for _, many := range []string{"cancel-all", "shift", "timers"} {
		publish("delayctl."+many, "_INBOX_payments.x", `{"by":"-1h","up_to":100}`)
		publish("delayctl."+many+".orders", "_INBOX_payments.x", `{"by":"-1h","up_to":100}`)
	}
	// The server publishes answers on these reply subjects.
	for _, reply := range []string{timer, "delaysys.armed", "delaysys.hop.10s.timer", "orders.core.x"} {
		publish("evil.x", reply, "")
		publish("$JS.API.DIRECT.GET.EVIL", reply, `{"last_by_subj":"evil.set"}`)
		publish("$JS.API.STREAM.MSG.GET.EVIL", reply, `{"last_by_subj":"evil.set"}`)
		publish("$JS.API.CONSUMER.MSG.NEXT.EVIL.evil", reply, "1")
		publish("delaytimer.mine.payments.core.x", reply, "mine", "Delay-For", "2h")
		publish("delayctl.timer.get.mine.payments.core.x", reply, "")
		publish("delayctl.timer.set.mine.payments.core.x", reply, "mine", "Delay-For", "2h")
		publish("$SRV.PING", reply, "")
	}
	for _, api := range []string{"STREAM.PURGE.DELAY_TIMERS", "STREAM.PURGE.DELAY_10s"} {
		publish("$JS.API."+api, "_INBOX_payments.x", "")
	}
	publish("$JS.API.STREAM.MSG.DELETE.DELAY_TIMERS", "_INBOX_payments.x", `{"seq":`+is+`}`)
	time.Sleep(time.Second)
}

// createEvil creates a stream of a tenant with a set in it, if the tenant may create streams.
func createEvil(c *harness.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	st, err := c.JS.CreateStream(ctx, jetstream.StreamConfig{
		Name: "EVIL", Subjects: []string{"evil.>"}, AllowDirect: true,
	})
	if err != nil {
		return
	}
	_, err = st.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "evil", AckPolicy: jetstream.AckNonePolicy})
	if err != nil {
		c.T.Error(err)
	}
	c.Publish("evil.set", "evil", "Delay-For", "1s")
}

// TestTenantsTimersApart: two tenants have an account each, with a broker each or with one broker for both. No tenant
// can see, cancel, move, fire or forge the other tenant's timers, by any subject or reply subject.
func TestTenantsTimersApart(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for file, name := range map[string]string{"../permissions/isolated-accounts.conf": "orders.", accountsConf: ""} {
		natstest.SubtestWith(t, file, natstest.Options(t, file), func(t *testing.T, s *natstest.Server) {
			stage := &stage{Server: s, modes: "auto"}
			if file == accountsConf {
				stop, err := stage.provisionAndRun()
				natstest.NoError(t, err)
				t.Cleanup(func() { _ = stop() }) // in the bubble, because the stop needs its time
			} else {
				for _, name := range []string{"orders", "payments"} {
					cfg := broker.Config{Ladder: harness.Ladder(t, "10s 1m"), Timers: true, ReplyPrefixes: []string{"_INBOX_" + name}}
					harness.StartBroker(t, s, cfg, nats.UserInfo(name+"-broker", name[:1]+"b"),
						nats.CustomInboxPrefix("_INBOX_"+name+"-broker"))
				}
			}
			orders, payments := connect(t, s, "orders"), connect(t, s, "payments")
			in, foreign := orders.Subscribe("orders.>"), payments.Subscribe(">")
			createEvil(payments)
			start := time.Now()
			subject := "delaytimer." + victimKey + "." + name + "core.x"
			g := orders.Publish(subject, "secret", "Delay-For", "1h").Sequence
			moved := orders.PublishIf(g, subject, "secret", "Delay-For", "1h")
			for range 3 {
				attackTimer(payments, moved)
				time.Sleep(10 * time.Minute)
			}
			get := "delayctl.timer.get." + victimKey + "." + name + "core.x"
			var got change.Answer
			if code := orders.CallService(&got, get, ""); code != "" || got.Outcome != "pending" || got.Generation != moved {
				t.Errorf("half an hour before the due time, get returns %q, %+v; want pending with generation %d", code, got, moved)
			}
			harness.CheckExactly(t, in, start.Add(time.Hour), 0)
			time.Sleep(time.Hour)
			harness.CheckBodies(t, in.Arrivals(), "secret")
			for _, a := range foreign.Arrivals() {
				if a.Body == "secret" {
					t.Errorf("payments received on %s %q", a.Subject, a.Body)
				}
			}
		})
	}
}

// TestNeighboursTimers: two tenants share an account, with the documented grants. Attacks of one tenant on a timer of
// the other have only the documented effects, also while no broker runs.
func TestNeighboursTimers(t *testing.T) {
	t.Parallel()
	const timer = "delaytimer." + victimKey + "." + victimTarget
	for name, tt := range map[string]struct {
		attack func(t *testing.T, payments *harness.Client, generation uint64)
		lost   bool // an entry that is not a timer replaces the timer
	}{
		"requests that the attacker's grants refuse": {attack: func(t *testing.T, payments *harness.Client, g uint64) {
			publish := func(subject, reply string, headers ...string) {
				m := harness.NewMsg(subject, "", headers...)
				m.Reply = reply
				natstest.NoError(t, payments.NC.PublishMsg(m))
			}
			publish(timer, "", "Delay-Cancel", "evil")
			publish(timer, "", "Delay-For", "1s")
			for _, subject := range []string{"delayctl.timer.cancel.", "delayctl.timer.fire.", "delayctl.timer.get."} {
				publish(subject+victimKey+"."+victimTarget, "_INBOX_payments.x")
			}
			publish("delayctl.cancel-all", "_INBOX_payments.x")
			publish("delayctl.timers.orders", "_INBOX_payments.x")
			publish("$JS.API.STREAM.PURGE.DELAY_TIMERS", "_INBOX_payments.x")
		}},
		"a timer's acknowledgement": {lost: true, attack: func(t *testing.T, payments *harness.Client, g uint64) {
			m := &nats.Msg{Subject: "delay.10s.payments.x", Reply: timer}
			natstest.NoError(t, payments.NC.PublishMsg(m))
		}},
		"its sequence, which an answer reveals": {attack: func(t *testing.T, payments *harness.Client, g uint64) {
			m := &nats.Msg{Subject: "delaytimer.mine.payments.x", Header: nats.Header{"Delay-For": {"1h"}}}
			m.Header.Set("Nats-Expected-Last-Subject-Sequence", fmt.Sprint(g+1000))
			m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", timer)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			answer, err := payments.NC.RequestMsgWithContext(ctx, m)
			natstest.NoError(t, err)
			if !strings.Contains(string(answer.Data), fmt.Sprintf("wrong last sequence: %d", g)) {
				t.Errorf("the answer is %s, want the sequence %d", answer.Data, g)
			}
		}},
	} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", without a broker ", down), func(t *testing.T) {
				t.Parallel()
				err := runOnAccounts(t, tenantsConf, "auto", func(s *stage) error {
					stop, err := s.provisionAndRun()
					if err != nil {
						return err
					}
					defer func() { _ = stop() }() // the present stop
					orders, payments := connect(t, s.Server, "orders"), connect(t, s.Server, "payments")
					in, foreign := orders.Subscribe("orders.>"), payments.Subscribe("payments.>")
					letters := orders.Subscribe("delaydead.*.orders.>")
					start := time.Now()
					g := orders.Publish(timer, "secret", "Delay-For", "10m").Sequence
					time.Sleep(time.Minute)
					if down {
						natstest.NoError(t, stop())
					}
					tt.attack(t, payments, g)
					if down {
						time.Sleep(time.Minute)
						_, stop, err = s.runBroker()
						natstest.NoError(t, err)
					}
					if !tt.lost {
						harness.CheckExactly(t, in, start.Add(10*time.Minute), 0)
					}
					time.Sleep(15 * time.Minute)
					want, dead := "secret", 0
					if tt.lost {
						want, dead = "", 1
					}
					if got := harness.Bodies(in.Arrivals()); got != want || len(letters.Arrivals()) != dead {
						t.Errorf("%q and %d dead letters arrived, want %q and %d", got, len(letters.Arrivals()), want, dead)
					}
					for _, a := range letters.Arrivals() {
						if !strings.Contains(a.Header.Get("Delay-Error"), "the entry before it is replaced") {
							t.Errorf("the letter says %q", a.Header.Get("Delay-Error"))
						}
					}
					for _, a := range foreign.Arrivals() {
						if strings.Contains(a.Body, "secret") {
							t.Errorf("payments received on %s %q", a.Subject, a.Body)
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
