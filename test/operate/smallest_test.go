package operate

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestSmallestAccount: with the smallest configuration of REFERENCE.md, a broker works in an account with ten streams
// and 1 GiB that requires max_bytes: levels, other delays, times, retries and dead letters, timers that recur, and
// pauses.
func TestSmallestAccount(t *testing.T) {
	natstest.ClearEnv(t)
	reference, err := os.ReadFile("../../cmd/delaybroker/REFERENCE.md")
	natstest.NoError(t, err)
	block := regexp.MustCompile("(?s)ten streams and\n1 GiB.*?```sh\n(.*?)```").FindStringSubmatch(string(reference))
	if block == nil {
		t.Fatal("REFERENCE.md has no smallest configuration")
	}
	t.Setenv("NATS_URL", "nats://127.0.0.1:4222")
	for line := range strings.Lines(block[1]) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(name, value)
	}
	read, err := settings.Read()
	natstest.NoError(t, err)
	cfg := read.Broker
	account := natstest.NewAccount(t, func(c *jwt.AccountClaims) {
		l := &c.Limits.JetStreamLimits
		l.Streams, l.DiskStorage, l.MaxBytesRequired = 10, 1<<30, true
	})
	var o server.Options
	account.Options(&o)
	natstest.BubbleWith(t, o, func(t *testing.T, s *natstest.Server) {
		cfg.Leaser = harness.Together
		harness.StartBroker(t, s, cfg, account.User())
		c := harness.WrapConn(t, s.Connect(account.User()))
		c.Create(jetstream.StreamConfig{Name: "T", Subjects: []string{"t.>"}, MaxBytes: 512 << 20})
		c.Publish("delay.1s.t.x", "level")
		c.Publish("delay.2m.t.x", "plain")
		c.Publish("delayin.1h10m.t.x", "hops")
		c.Publish("delayat."+time.Now().Add(90*time.Second).UTC().Format(time.RFC3339)+".t.x", "time")
		c.Publish("delaytimer.k.t.x", "timer", "Delay-For", "30s")
		c.Publish("delaytimer.e.t.x", "series", "Delay-Every", "50m")
		c.Publish("delay.1s.missing", "letter", "Delay-Max-Attempts", "2", "Delay-Deliver", "stream")
		for range 1000 {
			c.Publish("delay.1m.t.many", strings.Repeat("x", 1000))
		}
		i, err := inspect.Open(s.Connect(account.User()), cfg)
		natstest.NoError(t, err)
		natstest.NoError(t, i.ReadKeys(t.Context()))
		harness.MustPause(t, i, "t.paused")
		c.Publish("delay.1s.t.paused", "paused")
		time.Sleep(time.Minute)
		harness.MustResume(t, i, "t.paused")
		time.Sleep(2 * time.Hour)
		got := c.Arrivals("T")
		many := slices.DeleteFunc(slices.Clone(got), func(a harness.Arrival) bool { return a.Subject != "t.many" })
		others := slices.DeleteFunc(got, func(a harness.Arrival) bool { return a.Subject == "t.many" })
		harness.CheckOnTime(t, many, 1000)
		harness.CheckBodies(t, others, "hops level paused plain series×2 time timer")
		harness.CheckCount(t, c.DeadLetters()["undelivered"], 1)
	})
}
