package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/stats"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// A diagnosis is the only finding that doctor should report in a situation, except for the weakness of a single server.
type diagnosis struct {
	situation
	check  string
	state  Severity
	detail string // a part of the finding's detail
	advice string // the whole advice; … stands for a name
}

func (d diagnosis) judge(t *testing.T, found []Finding) {
	t.Helper()
	found = slices.DeleteFunc(found, func(f Finding) bool {
		return f.Severity == Fine || f.Severity == Skipped && d.state > Fine ||
			f.Check == "durability" && d.options.ServerName != "" && d.check != "durability"
	})
	begins, ends, _ := strings.Cut(d.advice, "…")
	if len(found) != 1 || found[0].Check != d.check || found[0].Severity != d.state ||
		!strings.Contains(found[0].Detail, d.detail) || !strings.HasPrefix(found[0].Advice, begins) ||
		!strings.HasSuffix(found[0].Advice, ends) || ends == "" && found[0].Advice != d.advice {
		t.Errorf("got\n%swant one finding: %s %s: …%s… ==> %s", problems(found), d.state, d.check, d.detail, d.advice)
	}
}

// TestDoctorOnBrokers: doctor reports that no broker delivers, two brokers deliver from one lane, or a broker cannot
// deliver.
func TestDoctorOnBrokers(t *testing.T) {
	natstest.SkipShort(t)
	for _, d := range []diagnosis{
		{situation{name: "no broker runs", set: func(sc *scene) {
			sc.provision()
		}}, "lanes", Critical, "no broker reads any of the 6 lanes", "start a broker: delaybroker serve"},
		{situation{name: "the only broker died", set: func(sc *scene) {
			sc.serve().crash()
		}}, "lanes", Critical, "no broker reads any of the 6 lanes", "start a broker: delaybroker serve"},
		{situation{name: "a lane that the brokers do not know", set: func(sc *scene) {
			sc.serve()
			sc.cfg.Ladder = harness.Ladder(sc.t, "1s 5s 7s 5m")
			sc.provision()
		}}, "lanes", Critical, "no broker reads DELAY_7s",
			"restart a broker: a broker does not read streams created after its start"},
		{situation{name: "a series is paused after dead letters, which were removed", set: func(sc *scene) {
			sc.cfg.Timers = true
			sc.serve()
			c := harness.WrapConn(sc.t, sc.client)
			header := []string{"Delay-Every", "1s", "Delay-Deliver", "stream", "Delay-Max-Attempts", "1"}
			c.Publish("delaytimer.once.orders.x", "", append(header, "Delay-Rounds", "1", "Delay-Pause-After", "1")...)
			c.Publish("delaytimer.k.orders.x", "", append(header, "Delay-Pause-After", "2")...)
			c.Publish("delaytimer.by-hand.orders.x", "", "Delay-Every", "1h")
			time.Sleep(3 * time.Second)
			var answer struct{}
			c.CallService(&answer, "delayctl.timer.pause.by-hand.orders.x", "")
			c.Purge("DELAY_DEAD")
		}}, "series", Warn, "paused after dead letters: k orders.x (paused after dead letters in a row (2): ",
			"repair the target, then delaybroker schedules resume; schedules ls shows the reasons"},
		{situation{name: "two brokers with different settings", set: func(sc *scene) {
			sc.serve()
			sc.cfg.Attempts, sc.cfg.MaxDelay = 7, time.Hour
			sc.serve()
		}}, "settings", Warn, ": DELAY_ATTEMPTS, DELAY_MAX_DELAY",
			"give all instances the same settings, and restart those that differ"},
		{situation{name: "two brokers with different secrets", set: func(sc *scene) {
			sc.cfg.Secrets = []string{strings.Repeat("a", 32)}
			sc.serve()
			sc.cfg.Secrets = []string{strings.Repeat("b", 32)}
			sc.serve()
		}}, "lanes", Critical, " are both active, so each message is delivered twice",
			"set the same DELAY_SECRET for both: each rejects the other's seals"},
		{situation{name: "a broker that may not read", rights: natstest.DenyPublish("$JS.API.CONSUMER.CREATE.DELAY_5s.>"),
			set: func(sc *scene) {
				sc.launch(nats.UserInfo(natstest.LimitedUser, natstest.LimitedUser))
				time.Sleep(time.Minute)
			}}, "rights", Critical, " were refused on its read connection: Publish to $JS.API.CONSUMER.CREATE.DELAY_5s.*",
			"grant these subjects to the user of that connection"},
		{situation{name: "a broker that may not write", rights: natstest.DenyPublish("delaysys.hop.>"), set: func(sc *scene) {
			sc.serve(nats.UserInfo(natstest.LimitedUser, natstest.LimitedUser))
			sc.publish(3, "delayin.10m.orders.x")
			time.Sleep(time.Minute)
		}}, "rights", Critical, " were refused on its write connection: Publish to delaysys.hop.5m.orders.x",
			"grant these subjects to the user of that connection"},
		{situation{name: "a broker that is stuck", set: func(sc *scene) {
			sc.serve()
			sc.host.Probe = Probe{URL: "http://here/readyz", Checks: []stats.Check{{Name: "lanes", OK: true}},
				Alive: []stats.Check{{Name: "process", OK: true}, {Name: "engine", Detail: "the loop of DELAY_5s is stuck"}}}
		}}, "ready", Critical, "the loop of DELAY_5s is stuck", "restart the broker at http://here/readyz"},
	} {
		d.play(t, d.judge)
	}
}

// TestDoctorOnTargets: doctor reports that messages do not arrive for a reason outside the broker.
func TestDoctorOnTargets(t *testing.T) {
	natstest.SkipShort(t)
	for _, d := range []diagnosis{
		{situation{name: "a target without a subscriber", set: func(sc *scene) {
			sc.serve()
			sc.publish(50, "delay.1s.shop.mail")
			time.Sleep(2 * time.Minute)
		}}, "targets", Warn, " of 20: nobody listens on the subject (503)",
			"start the consumer of shop.mail"},
		{situation{name: "a subscriber in place of a stream", set: func(sc *scene) {
			sc.listen("shop.mail")
			sc.serve()
			sc.publish(5, "delay.1s.shop.mail", "Delay-Deliver", "stream")
			time.Sleep(4 * time.Minute)
		}}, "targets", Warn, "no stream acknowledged in time", "create a stream for shop.mail"},
		{situation{name: "the broker may not publish to the target", rights: natstest.DenyPublish("shop.>"),
			set: func(sc *scene) {
				sc.serve(nats.UserInfo(natstest.LimitedUser, natstest.LimitedUser))
				sc.publish(3, "delay.1s.shop.mail")
				time.Sleep(2 * time.Minute)
			}}, "targets", Warn, "shop.mail has been failing for ",
			"grant the broker's user permission to publish to shop.mail"},
		{situation{name: "a service that answers with an error", set: func(sc *scene) {
			mail := &micro.EndpointConfig{
				Subject: "shop.mail", Handler: micro.HandlerFunc(func(r micro.Request) { _ = r.Error("500", "down", nil) }),
			}
			if _, err := micro.AddService(sc.client, micro.Config{
				Name: "mail", Version: "1.0.0", Endpoint: mail,
			}); err != nil {
				sc.t.Fatal(err)
			}
			sc.serve()
			sc.publish(500, "delay.1s.shop.mail", "Delay-Deliver", "request")
			time.Sleep(2 * time.Minute)
		}}, "targets", Warn, "with 500 waiting, attempt 5 of 20: the service says 500 down",
			"correct the cause at shop.mail, or pause it: delaybroker pause shop.mail"},
		{situation{name: "a target whose stream is full, and twenty targets without a listener", set: func(sc *scene) {
			sc.create(jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop.mail"}, MaxMsgs: 1,
				Discard: jetstream.DiscardNew})
			sc.serve()
			sc.publish(31, "delay.1s.shop.mail")
			for n := range 20 {
				sc.publish(1, fmt.Sprintf("delay.1s.orders.%d", n))
			}
			time.Sleep(2 * time.Minute)
		}}, "targets", Warn,
			"21 targets refuse 50 messages, most: shop.mail (30 for 1m31s): maximum messages exceeded (10077)",
			"read the reasons: delaybroker retrying"},
		{situation{name: "a storm of dead letters", set: func(sc *scene) {
			sc.serve()
			sc.publish(400, "delayin.500d.orders.x")
			sc.publish(3, "delayin.soon.orders.x")
			time.Sleep(time.Minute)
		}}, "dead letters", Warn, "403 in DELAY_DEAD, the newest 1m old, 400 of them too_far",
			"read the reasons: delaybroker dead ls --code too_far --by target,reason"},
		{situation{name: "dead letters of all kinds", set: func(sc *scene) {
			sc.serve()
			sc.publish(3, "delayin.500d.orders.x")
			sc.publish(3, "delayin.soon.orders.x")
			time.Sleep(time.Minute)
		}}, "dead letters", Warn, "6 in DELAY_DEAD, the newest 1m old",
			"read the reasons: delaybroker dead ls --by code,target,reason"},
		{situation{name: "messages of a prefix without a broker", set: func(sc *scene) {
			cfg := sc.cfg
			sc.cfg.Prefix = "later"
			sc.provision()
			sc.publish(3, "later.5m.orders.x")
			sc.cfg = cfg
			sc.serve()
		}}, "streams", Warn, `3 messages wait in 1 stream of prefix "later", such as LATER_5m`,
			"run a broker with DELAY_PREFIX=later until they are empty"},
	} {
		d.play(t, d.judge)
	}
}
