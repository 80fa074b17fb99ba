package promises

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFloodOfRatedMessages: a tenant publishes thousands of messages at once, each for another target with a rate, or
// with another Delay-Rate-Key. No message of another tenant is late: neither one for a target with a rate, nor one
// without, nor a timer. RATED is the number of messages.
func TestFloodOfRatedMessages(t *testing.T) {
	t.Parallel()
	fallback := "10000"
	if testing.Short() {
		fallback = "1000"
	}
	flood, err := strconv.Atoi(cmp.Or(os.Getenv("RATED"), fallback))
	natstest.NoError(t, err)
	for name, subject := range map[string]string{"targets": "delay.5s.att.t.%d", "keys": "delay.5s.att.k.%d"} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			const count, every, deep = 300, 60 * time.Millisecond, 30
			harness.StartBrokers(t, s, 2, broker.Config{
				Leaser: harness.Together, Log: harness.NoLog, Timers: true,
				Rates:      deliver.Rates{{Pattern: "att.t.>", Value: 1}, {Pattern: "vic.r.*", Value: 20}},
				RatesByKey: deliver.Rates{{Pattern: "att.k.>", Value: 1}},
			})
			c, attacker := harness.NewClient(t, s), harness.NewClient(t, s)
			c.Target("VIC", "vic.>")
			c.Create(jetstream.StreamConfig{Name: "ATT", Subjects: []string{"att.>"}, Storage: jetstream.MemoryStorage})
			for i := range count {
				if i == count/4 {
					for i := range flood + deep {
						m := harness.NewMsg(fmt.Sprintf(subject, i%flood), "", "Delay-Rate-Key", fmt.Sprint(i%flood))
						if i >= flood { // these wait for the rate of one target or key
							m = harness.NewMsg(fmt.Sprintf(subject, 0), "", "Delay-Rate-Key", "0")
						}
						_, err := attacker.JS.PublishMsgAsync(m)
						natstest.NoError(t, err)
					}
					<-attacker.JS.PublishAsyncComplete()
				}
				c.Publish("delay.1s.vic.r.x", fmt.Sprint(i))
				c.Publish("delay.1s.vic.p", fmt.Sprint(i))
				c.Publish(fmt.Sprintf("delaytimer.k%d.vic.t", i), "", "Delay-For", "1s")
				time.Sleep(every)
			}
			time.Sleep(deep * time.Second)
			synctest.Wait()
			harness.CheckOnTime(t, c.Arrivals("VIC"), 3*count)
			if n := harness.Pending(c, "ATT"); n != uint64(flood+deep) {
				t.Errorf("%d messages of the flood arrived, want %d", n, flood+deep)
			}
			c.CheckNoDead()
		})
	}
}
