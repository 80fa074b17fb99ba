package owners

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/capacity"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFleetsBehindMapping: the mappings that the command size prints divide the messages between two fleets. Clients
// publish below one prefix. Each fleet delivers its part, and every message arrives once and on time. The server checks
// the permissions of a publish on the mapped subject.
func TestFleetsBehindMapping(t *testing.T) {
	t.Parallel()
	const fleets = 2
	file := filepath.Join(natstest.Dir(t), "server.conf")
	mappings := capacity.FormatMappings(capacity.Mappings(message.DefaultPrefix, fleets))
	natstest.NoError(t, os.WriteFile(file, []byte(mappings), 0o600))
	opts, err := server.ProcessConfigFile(file)
	natstest.NoError(t, err)
	withUsers := server.Options{Accounts: opts.Accounts}
	natstest.SetUsers(&withUsers, server.Permissions{Publish: &server.SubjectPermission{Allow: []string{
		"delay1.*.orders.>", "delay1in.*.orders.>", "delay1at.*.orders.>",
		"delay2.*.orders.>", "delay2in.*.orders.>", "delay2at.*.orders.>",
	}}})
	natstest.BubbleWith(t, withUsers, func(t *testing.T, s *natstest.Server) {
		for n := range fleets {
			cfg := harness.MemberConfig(t)
			cfg.Prefix = capacity.FleetPrefix(message.DefaultPrefix, n+1)
			harness.StartBrokers(t, s, 2, cfg)
		}
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		tenant := harness.WrapConn(t, s.ConnectAs(natstest.LimitedUser))
		const count = 200
		by := make(map[string]int)
		for i := range count {
			subject := []string{"delay.5s.orders.x", "delayin.1700ms.orders.x", "delayat.2000-01-01T00:02:00Z.orders.x"}[i%3]
			by[tenant.Publish(subject, fmt.Sprint(i)).Stream[:len("DELAYn")]]++
		}
		time.Sleep(3 * time.Minute)
		checkPrompt(t, in.Arrivals(), count, 0)
		if a, b := by["DELAY1"], by["DELAY2"]; a+b != count || a < count/4 || b < count/4 {
			t.Errorf("the fleets have %v of %d messages, want about a half each", by, count)
		}
	})
}
