package operate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestUpgradeWithoutRoomForTimers: a broker with named timers replaces one without. Its account has no room for another
// stream, or its user has no permission to create the timers' stream. The broker starts and works without timers, and
// requests that set a timer get no answer. If the configuration requires timers, the broker does not start. With room,
// or with the permission, the broker creates the stream.
func TestUpgradeWithoutRoomForTimers(t *testing.T) {
	t.Parallel()
	const conf = `
accounts { APP {
  jetstream { max_streams: 20 }
  users: [
    { user: app, password: a, permissions { publish { deny: ["$JS.API.STREAM.CREATE.DELAY_TIMERS"] } } }
    { user: all, password: a }
  ]
} }
no_auth_user: all
`
	file := filepath.Join(t.TempDir(), "server.conf")
	natstest.NoError(t, os.WriteFile(file, []byte(conf), 0o600))
	for name, userName := range map[string]string{"no room": "all", "no right": "app"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts, err := server.ProcessConfigFile(file)
			natstest.NoError(t, err)
			natstest.BubbleWith(t, *opts, func(t *testing.T, s *natstest.Server) {
				cfg, user := broker.Config{Ladder: harness.Ladder(t, "1s 10s"), MaxOwners: 3}, nats.UserInfo(userName, "a")
				harness.StartBroker(t, s, cfg, user).Stop()
				c := harness.NewClient(t, s)
				in := c.Subscribe("orders.>")
				if userName == "all" {
					fillUp(c)
				}
				before := streamNames(c)
				cfg.Timers, cfg.TimersOptional = true, true
				b := harness.StartBroker(t, s, cfg, user)
				c.Publish("delay.10s.orders.x", "x")
				harness.CheckExactly(t, in, time.Now().Add(10*time.Second), 0)
				if got := streamNames(c); fmt.Sprint(got) != fmt.Sprint(before) {
					t.Errorf("the streams were %v, and are %v", before, got)
				}
				m := &nats.Msg{Subject: "delaytimer.k.orders.x", Header: nats.Header{"Delay-For": {"1s"}}}
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				if _, err := c.NC.RequestMsgWithContext(ctx, m); err == nil {
					t.Error("a request that sets a timer is answered")
				}
				b.Stop()

				cfg.TimersOptional = false
				refusing := harness.LaunchBroker(t, s, cfg, user)
				select {
				case <-refusing.Broker.Ready():
					t.Error("the broker starts without timers although its configuration requires them")
				case err := <-refusing.Done:
					t.Log(err)
					refusing.Ended = true
					refusing.Close()
				}

				cfg.TimersOptional = true
				if userName == "all" {
					c.Remove("FILL0")
				}
				harness.StartBroker(t, s, cfg, nats.UserInfo("all", "a"))
				c.Publish("delaytimer.k.orders.x", "k", "Delay-For", "1m")
				harness.CheckExactly(t, in, time.Now().Add(time.Minute), 1)
			})
		})
	}
}

// fillUp creates streams until there is no room for another.
func fillUp(c *harness.Client) {
	c.T.Helper()
	for n := range 20 {
		name := fmt.Sprint("FILL", n)
		_, err := c.JS.CreateStream(context.Background(), jetstream.StreamConfig{Name: name, Subjects: []string{name}})
		if err != nil {
			return
		}
	}
	c.T.Fatal("there is room for 20 more streams")
}

// streamNames returns the names of all streams, in order.
func streamNames(c *harness.Client) (all []string) {
	c.T.Helper()
	list := c.JS.StreamNames(context.Background())
	for name := range list.Name() {
		all = append(all, name)
	}
	natstest.NoError(c.T, list.Err())
	return all
}

// TestUpgradeAndBackWithTimers replaces the broker by a newer one, then by the older one, then by the newer one again.
// Each leaves timers and series in every state to the next: timers that are pending with a marker and without, moved,
// replaced, cancelled, refused by their target, or set while no broker runs; series between two rounds, paused, or with
// a moved round; and schedules in nats-server's format, pending and replaced. Each message arrives exactly once, and no
// cancelled one. DELAYBROKER_OLDER names the older program: see TestUpgradeAndBack.
func TestUpgradeAndBackWithTimers(t *testing.T) {
	t.Parallel()
	s := natstest.RunListening(t)
	c := harness.NewClient(t, s)
	c.Target("ORDERS", "orders.>")
	env := []string{
		"NATS_URL=" + s.Server().ClientURL(), "DELAY_PROVISION=create", "DELAY_TIMERS=on", "DELAY_LEVELS=1s,2s,5s",
		"DELAY_SCHEDULES=schedules.orders.>=orders.>",
		"DELAY_RETRY=1s 5s", // by default, a last retry after 30s, for which the test would wait
	}
	const phase = 4 * time.Second // duration of one version
	var want []string
	var settle func() // changes the timers of the previous version; runs under the next version
	for i, start := range []func(testing.TB, ...string) *natstest.Process{
		natstest.StartOlderBroker, natstest.StartBroker, natstest.StartOlderBroker, natstest.StartBroker,
	} {
		p := start(t, env...)
		if settle != nil {
			settle()
		}
		began := time.Now()
		key := func(name string) string { return fmt.Sprintf("delaytimer.%s-%d.orders.x", name, i) }
		set := func(name, header, value string, more ...string) uint64 {
			return c.PublishIf(0, key(name), name, append(more, header, value)...)
		}
		arrives := func(name string) { want = append(want, fmt.Sprint(name, " ", 0)) }
		set("armed", "Delay-For", "5s")
		arrives("armed")
		if g := set("moved", "Delay-For", "1h"); c.PublishIf(g, key("moved"), "moved", "Delay-For", "5s") == 0 {
			t.Error("a pending timer cannot be moved")
		}
		arrives("moved")
		set("replaced", "Delay-For", "1h")
		c.Publish(key("replaced"), "replaced", "Delay-For", "5s")
		arrives("replaced")
		if g := set("cancelled", "Delay-For", "5s"); c.PublishIf(g, key("cancelled"), "", "Delay-Cancel", "x") == 0 {
			t.Error("a pending timer cannot be cancelled")
		}
		late := set("late", "Delay-For", "12s")
		c.PublishIf(0, fmt.Sprintf("delaytimer.refused-%d.later.%d", i, i), "refused",
			"Delay-For", "1s", "Delay-Deliver", "stream")
		want = append(want, "refused 0")
		set("series", "Delay-Every", "2s", "Delay-Rounds", "4", "Delay-Missed-Rounds", "all")
		set("paused", "Delay-Every", "1s", "Delay-Rounds", "1")
		moved := set("shifted", "Delay-Every", "1h", "Delay-Rounds", "1")
		for round := range 4 {
			want = append(want, fmt.Sprint("series ", round+1))
		}
		want = append(want, "paused 1", "shifted 1")
		target := func(name string) string { return fmt.Sprintf("%s-%d.orders.x", name, i) }
		schedule := func(name, when string) {
			if _, code := c.Schedule(fmt.Sprintf("schedules.orders.%s-%d", name, i), "orders.x", when, name); code != 0 {
				t.Errorf("schedule %s is refused: %d", name, code)
			}
		}
		schedule("scheduled", harness.AtExpression(began.Add(5*time.Second)))
		arrives("scheduled")
		schedule("rescheduled", "@every 1h")
		schedule("rescheduled", harness.AtExpression(began.Add(6*time.Second)))
		arrives("rescheduled")
		change(c, "pause", target("paused"), "{}")
		change(c, "move", target("shifted"), fmt.Sprintf(`{"generation":%d,"for":"5s"}`, moved))
		time.Sleep(time.Until(began.Add(phase)))
		if p.Terminate(); i == 3 {
			p = natstest.StartBroker(t, env...)
			defer p.Terminate()
		}
		set("alone", "Delay-For", "1s")
		arrives("alone")
		stream, subject := fmt.Sprint("LATER", i), fmt.Sprintf("later.%d", i)
		settle = func() {
			if c.PublishIf(late, key("late"), "", "Delay-Cancel", "x") == 0 {
				t.Error("a pending timer of the previous version cannot be cancelled")
			}
			change(c, "resume", target("paused"), "{}")
			c.Target(stream, subject)
		}
	}
	settle()
	var got []string
	for deadline := time.Now().Add(40 * time.Second); len(got) < len(want) && time.Now().Before(deadline); {
		time.Sleep(time.Second)
		got = arrivals(c)
	}
	time.Sleep(3 * time.Second) // for duplicates
	got = arrivals(c)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("arrivals: got\n%q, want\n%q", got, want)
	}
	c.CheckNoDead()
}

// arrivals returns the sorted bodies of all arrivals, each with the number of its round.
func arrivals(c *harness.Client) (all []string) {
	for _, stream := range []string{"ORDERS", "LATER0", "LATER1", "LATER2", "LATER3"} {
		for _, a := range c.Arrivals(stream) {
			round := a.Header.Get("Delay-Round")
			if round == "" {
				round = "0"
			}
			all = append(all, a.Body+" "+round)
		}
	}
	slices.Sort(all)
	return all
}

// change requests a change of a timer, which must succeed.
func change(c *harness.Client, verb, timer, body string) {
	c.T.Helper()
	var answer struct{ Outcome, Why string }
	want := map[string]string{"pause": "paused", "resume": "pending", "move": "moved"}[verb]
	if code := c.CallService(&answer, "delayctl.timer."+verb+"."+timer, body); code != "" || answer.Outcome != want {
		c.T.Errorf("%s %s: %s %+v, want %s", verb, timer, code, answer, want)
	}
}
