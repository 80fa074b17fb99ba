package operate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestNoRoomForTimers: named timers are enabled for a broker that ran without them. Its account has no room for another
// stream, or its user has no permission to create the timers' stream. The broker starts and works without timers, and
// requests that set a timer get no answer. If the configuration requires timers, the broker does not start. With room,
// or with the permission, the broker creates the stream.
func TestNoRoomForTimers(t *testing.T) {
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
				cfg := broker.Config{Ladder: harness.Ladder(t, "1s 10s"), Leaser: harness.Together}
				user := nats.UserInfo(userName, "a")
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
