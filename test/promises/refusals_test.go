package promises

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestRefusalsAreLogged: the first refusal of a target is logged immediately with its reason. The broker logs later
// refusals once a minute with their number, for all lanes together. The refusals of one target do not suppress log
// lines about another.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewLineLog("target refuses")
		c := harness.StartBroker(t, s, broker.Config{Log: log.Logger()}).NewClient()
		c.Service("shop.mail", func(int) *nats.Msg { return harness.FailureReply("no stock") })
		c.Service("shop.sms", func(n int) *nats.Msg { return harness.FailureReply(fmt.Sprint("try ", n)) })
		log.Start = time.Now()
		for range 3 {
			c.Publish("delay.5s.shop.mail", "x", message.HeaderDeliver, "request")
		}
		c.Publish("delay.7s.shop.sms", "x", message.HeaderDeliver, "request")
		time.Sleep(2 * time.Minute)
		log.Check(t, // attempts at 5s, 6s, 11s, 41s, 71s and 101s, and of the second target two seconds later
			`time=5s msg="target refuses" target=shop.mail reason="the service says 500 no stock" attempt=1 of=20`,
			`time=7s msg="target refuses" target=shop.sms reason="the service says 500 try 1" attempt=1 of=20`,
			`time=1m11s msg="target refuses" target=shop.mail reason="the service says 500 no stock" attempt=5 of=20 more=11`,
			`time=1m13s msg="target refuses" target=shop.sms reason="the service says 500 try 5" attempt=5 of=20 more=3`,
		)
	})
}

// TestRefusalsOfManyTargets: refusals by subjects that contain ids do not fill the log. Suppressed log lines are
// counted.
func TestRefusalsOfManyTargets(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewLineLog("target refuses")
		c := harness.StartBroker(t, s, broker.Config{RetryLadder: harness.Ladder(t, "1m"), Log: log.Logger()}).NewClient()
		const targets = 300
		for n := range targets { // nobody listens
			c.Publish(fmt.Sprint("delay.5s.orders.", n), "x", message.HeaderDeliver, "core")
		}
		time.Sleep(30 * time.Second)
		const maxLines = 65 // in a minute
		harness.CheckCount(t, log.Lines(), maxLines)
		time.Sleep(time.Minute)
		more := log.Lines()[maxLines:]
		if got := len(more); got > maxLines {
			t.Errorf("%d lines in another minute, want %d at most", got, maxLines)
		}
		if want := fmt.Sprint("others=", targets-maxLines); !strings.Contains(strings.Join(more, "\n"), want) {
			t.Errorf("got no %q in\n%s", want, strings.Join(more, "\n"))
		}
	})
}

// TestDeadLettersAreLogged: the log line of a dead letter names the target.
func TestDeadLettersAreLogged(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		log := harness.NewLineLog("dead letter")
		c := harness.StartBroker(t, s, broker.Config{Attempts: 1, Log: log.Logger()}).NewClient()
		log.Start = time.Now()
		c.Publish("delay.5s.shop.mail", "x", message.HeaderDeliver, "core")
		time.Sleep(time.Minute)
		l := c.DeadLetters()["undelivered"][0]
		log.Check(t, `time=5s msg="dead letter" stream=DELAY_5s code=undelivered target=shop.mail id=`+l.ID+
			` reason="nobody listens on the subject (503)"`)
	})
}

// TestLastReasonTravels: between lanes, a message has the reason of its last refusal. At its target, the message does
// not have the reason.
func TestLastReasonTravels(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, broker.Config{Attempts: 5}, func(t *testing.T, c *harness.Client) {
		in := c.Service("svc", func(n int) *nats.Msg {
			if n > 2 {
				return &nats.Msg{}
			}
			return harness.FailureReply(fmt.Sprint("try ", n))
		})
		c.Publish("delay.5s.svc", "x", message.HeaderDeliver, "request")
		for n, stream := range []string{"DELAY_RETRY_1s", "DELAY_RETRY_5s"} {
			time.Sleep(5500*time.Millisecond - time.Duration(n)*4*time.Second)
			all := c.Arrivals(stream)
			if len(all) != 1 {
				t.Fatalf("%s holds %d messages, want one", stream, len(all))
			}
			r := harness.StateOf(t, all[0].Header)
			if r.LastError != fmt.Sprint("the service says 500 try ", n+1) || r.Attempts != n+1 || r.AllowedRefusals != 5 ||
				r.DeferralReason != "" {
				t.Errorf("in %s: got %+v", stream, r)
			}
		}
		time.Sleep(time.Minute)
		harness.CheckCount(t, in.Arrivals(), 3)
		for _, a := range in.Arrivals() {
			for _, name := range []string{message.HeaderLastError, message.HeaderDeferred, message.HeaderAllowed} {
				if a.Header.Get(name) != "" {
					t.Errorf("at its target, the message has %s", name)
				}
			}
		}
		c.CheckEmpty()
	})
}

// TestRetriesWithJitter: messages that a target refused together are retried at different times. No retry is before the
// end of its wait, or later than the jitter allows. The jitter, here up to 12 s, may be longer than the 3 s that a
// message usually waits in memory.
func TestRetriesWithJitter(t *testing.T) {
	t.Parallel()
	const count = 40
	cfg := broker.Config{
		RetryLadder: harness.Ladder(t, "1m"), RetryJitter: config.RetryJitter{{Pattern: "svc", Value: 20}},
	}
	harness.Bubble(t, cfg, func(t *testing.T, c *harness.Client) {
		in := runFailing(c, "svc", count)
		due := time.Now().Add(5 * time.Second)
		for i := range count {
			c.Publish(fmt.Sprintf("delayat.%d.svc", due.Unix()), strconv.Itoa(i), message.HeaderDeliver, "request")
		}
		time.Sleep(10 * time.Minute)
		all := in.Arrivals()
		harness.CheckCount(t, all, 2*count)
		times := make(map[time.Duration]int)
		for _, a := range all[count:] {
			after := a.At.Sub(due)
			if after < time.Minute || after >= 72*time.Second || after%time.Millisecond != 0 {
				t.Errorf("%s arrived again after %s, want a whole millisecond from 1m0s to 1m12s", a.Body, after)
			}
			times[after.Truncate(time.Second)]++
		}
		for after, n := range times {
			if n > count/3 {
				t.Errorf("%d of %d arrived again after %s", n, count, after)
			}
		}
		c.CheckEmpty()
	})
}

// byTarget returns a configuration in which shop.mail is tried three times, with waits of 2s and 10m, and other targets
// four times.
func byTarget(t *testing.T) broker.Config {
	return broker.Config{
		RetryLadder: harness.Ladder(t, "1s 5s"),
		RetryRules:  config.RetryWaits{{Pattern: "shop.mail", Value: harness.Ladder(t, "2s 10m")}},
		Attempts:    4, AttemptRules: config.RetryLimits{{Pattern: "shop.mail", Value: 3}},
	}
}

// TestRetriesByTarget: each target is retried as often as its rule says, at exactly the times of the rule. No target
// waits for the retries of another target.
func TestRetriesByTarget(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, byTarget(t), func(t *testing.T, c *harness.Client) {
		mail, other := runFailing(c, "shop.mail", forever), runFailing(c, "shop.sms", forever)
		start := time.Now()
		for _, target := range []string{"shop.mail", "shop.sms"} {
			c.Publish("delay.5s."+target, target, message.HeaderDeliver, "request")
		}
		time.Sleep(15 * time.Minute)
		checkAttempts(t, mail.Arrivals(), start, "5s/ 7s/1 10m7s/2")
		checkAttempts(t, other.Arrivals(), start, "5s/ 6s/1 11s/2 16s/3")
		harness.CheckBodies(t, c.DeadLetters()[string(message.Undelivered)], "shop.mail shop.sms")
		c.CheckEmptyBut("DELAY_DEAD")
	})
}

// TestMaxAttempts: a message may request fewer attempts than its target allows. The number stays through hops and
// retries and in the dead letter, and the target does not get it. A request of more attempts is a bad request.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	harness.Bubble(t, byTarget(t), func(t *testing.T, c *harness.Client) {
		in := runFailing(c, "shop.sms", forever)
		start := time.Now()
		publish := func(subject, attempts string) {
			c.Publish(subject, attempts, message.HeaderDeliver, "request", message.HeaderMaxAttempts, attempts)
		}
		publish("delayin.90s.shop.sms", "2") // two hops
		publish("delay.5s.shop.sms", "5")
		publish("delay.5s.shop.mail", "4")
		publish("delay.5s.shop.sms", "few")
		time.Sleep(15 * time.Minute)
		checkAttempts(t, in.Arrivals(), start, "1m30s/ 1m31s/1")
		for _, a := range in.Arrivals() {
			if a.Header.Get(message.HeaderMaxAttempts) != "" {
				t.Error("at its target, the message has Delay-Max-Attempts")
			}
		}
		letters := c.DeadLetters()
		refused := letters[string(message.Undelivered)]
		if len(refused) != 1 || refused[0].Header.Get(message.HeaderMaxAttempts) != "2" ||
			refused[0].Header.Get(message.HeaderAttempts) != "2" {
			t.Errorf("undelivered: %v, want the message that requested two attempts", refused)
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

// TestRetryLaneRetires: if no rule uses a retry lane any more, its messages are still delivered.
func TestRetryLaneRetires(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		first, c := harness.Start(t, s, byTarget(t))
		in := runFailing(c, "shop.mail", 2)
		start := time.Now()
		c.Publish("delay.5s.shop.mail", "x", message.HeaderDeliver, "request")
		time.Sleep(time.Minute)
		first.Stop()
		harness.StartBroker(t, s, broker.Config{})
		time.Sleep(15 * time.Minute)
		checkAttempts(t, in.Arrivals(), start, "5s/ 7s/1 10m7s/2")
		c.CheckEmpty()
	})
}
