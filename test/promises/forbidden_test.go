package promises

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// secretTargets denies the user "broker" to publish below "secret".
func secretTargets() server.Options {
	publish := &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"secret.>"}}
	return server.Options{Users: []*server.User{
		{Username: "broker", Password: "b", Permissions: &server.Permissions{Publish: publish}},
		{Username: "client", Password: "c"},
	}}
}

// TestForbiddenToTheBroker: the broker's user has no right to publish to some targets. NATS drops such a delivery and
// reports it asynchronously. That counts as a refusal in every mode, and not as a core subscriber without a reply.
func TestForbiddenToTheBroker(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, secretTargets(), func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Attempts: 2}, nats.UserInfo("broker", "b"))
		c := harness.Connected(t, s.Connect(nats.UserInfo("client", "c")))
		secret, open := c.Subscribe("secret.>"), c.Subscribe("open.>")
		c.Target("SECRETS", "secret.stored.>")
		modes := []string{"auto", "core", "stream", "request"}
		for _, mode := range modes {
			c.Publish("delay.1s.secret."+mode, mode, message.HeaderDeliver, mode)
			c.Publish("delay.1s.secret.stored."+mode, mode, message.HeaderDeliver, mode)
		}
		c.Publish(`delay.1s.secret."quoted\"`, "quoted")
		c.Publish("delay.1s.open.x", "open")
		time.Sleep(time.Hour)
		harness.CheckCount(t, secret.All(), 0)
		harness.CheckBodies(t, open.All(), "open")
		letters := c.Dead()[string(message.Undelivered)]
		harness.CheckCount(t, letters, 2*len(modes)+1)
		for _, l := range letters {
			if why := l.Header.Get(message.HeaderError); !strings.Contains(why, "grant") ||
				l.Header.Get(message.HeaderAttempts) != "2" {
				t.Errorf("%s: after %s attempts: %s", l.Subject, l.Header.Get(message.HeaderAttempts), why)
			}
		}
		c.CheckEmptyBut("DELAY_DEAD")
	})
}

// TestForbiddenAndHeardLate: nats.go calls its error handlers one after another, so a slow handler delays the report of
// a refusal. The refusal still counts.
func TestForbiddenAndHeardLate(t *testing.T) {
	t.Parallel()
	natstest.BubbleWith(t, secretTargets(), func(t *testing.T, s *natstest.Server) {
		slow := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { time.Sleep(200 * time.Millisecond) })
		harness.StartBroker(t, s, broker.Config{Attempts: 1}, nats.UserInfo("broker", "b"), slow)
		c := harness.Connected(t, s.Connect(nats.UserInfo("client", "c")))
		c.Subscribe("secret.>")
		const many = 20
		for i := range many {
			mode := []string{"auto", "core"}[i%2]
			c.Publish("delay.1s.secret."+strconv.Itoa(i), mode, message.HeaderDeliver, mode)
		}
		time.Sleep(time.Hour)
		harness.CheckCount(t, c.Dead()[string(message.Undelivered)], many)
	})
}
