package promises

import (
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// byTarget returns a configuration in which shop.mail is tried three times, after 2s and 10m, and other targets four
// times.
func byTarget(t *testing.T) broker.Config {
	return broker.Config{
		RetryLadder: harness.Ladder(t, "1s 5s"),
		RetryRules:  config.RetryWaits{{Pattern: "shop.mail", Value: harness.Ladder(t, "2s 10m")}},
		Attempts:    4, AttemptRules: config.RetryLimits{{Pattern: "shop.mail", Value: 3}},
	}
}

// TestRetriesByTarget: each target is retried as often as its rule says, at exactly these times. No target waits for
// the retries of another.
func TestRetriesByTarget(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, byTarget(t), func(t *testing.T, c *harness.Client) {
		mail, other := failing(c, "shop.mail", forever), failing(c, "shop.sms", forever)
		start := time.Now()
		for _, target := range []string{"shop.mail", "shop.sms"} {
			c.Publish("delay.5s."+target, target, message.HeaderDeliver, "request")
		}
		time.Sleep(time.Hour)
		checkAttempts(t, mail.All(), start, "5s/ 7s/1 10m7s/2")
		checkAttempts(t, other.All(), start, "5s/ 6s/1 11s/2 16s/3")
		harness.CheckBodies(t, c.Dead()[string(message.Undelivered)], "shop.mail shop.sms")
		c.CheckEmptyBut("DELAY_DEAD")
	})
}

// TestMaxAttempts: a message may ask for fewer attempts than its target allows. The number travels through hops and
// retries, is hidden from the target, and stays with the dead letter. To ask for more is a bad request.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, byTarget(t), func(t *testing.T, c *harness.Client) {
		in := failing(c, "shop.sms", forever)
		start := time.Now()
		publish := func(subject, attempts string) {
			c.Publish(subject, attempts, message.HeaderDeliver, "request", message.HeaderMaxAttempts, attempts)
		}
		publish("delayin.90s.shop.sms", "2") // two hops
		publish("delay.5s.shop.sms", "5")
		publish("delay.5s.shop.mail", "4")
		publish("delay.5s.shop.sms", "few")
		time.Sleep(time.Hour)
		checkAttempts(t, in.All(), start, "1m30s/ 1m31s/1")
		for _, a := range in.All() {
			if a.Header.Get(message.HeaderMaxAttempts) != "" {
				t.Error("at its target it has Delay-Max-Attempts")
			}
		}
		letters := c.Dead()
		refused := letters[string(message.Undelivered)]
		if len(refused) != 1 || refused[0].Header.Get(message.HeaderMaxAttempts) != "2" ||
			!strings.HasPrefix(refused[0].Header.Get(message.HeaderError), "the target refused all of 2 attempts") {
			t.Errorf("undelivered: %v, want the one that asked for two attempts", refused)
		}
		bounds := map[string]string{"4": "from 1 to 3,", "5": "from 1 to 4,", "few": "from 1 to 4,"}
		for _, l := range letters[string(message.BadOption)] {
			if want := bounds[l.Body]; want == "" || !strings.Contains(l.Header.Get(message.HeaderError), want) {
				t.Errorf("%s: %q, want the bound %q", l.Body, l.Header.Get(message.HeaderError), want)
			}
			delete(bounds, l.Body)
		}
		if len(bounds) != 0 {
			t.Errorf("no dead letters of %v", bounds)
		}
		c.CheckEmptyBut("DELAY_DEAD")
	})
}

// TestRetryLaneRetires: messages in a retry lane that no rule names any more are still delivered.
func TestRetryLaneRetires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		first := harness.StartBroker(t, s, byTarget(t))
		c := harness.NewClient(t, s)
		in := failing(c, "shop.mail", 2)
		start := time.Now()
		c.Publish("delay.5s.shop.mail", "x", message.HeaderDeliver, "request")
		time.Sleep(time.Minute)
		first.Stop()
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(time.Hour)
		checkAttempts(t, in.All(), start, "5s/ 7s/1 10m7s/2")
		c.CheckEmpty()
	})
}
