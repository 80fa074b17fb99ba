package tenants

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestRightsRevoked revokes rights of a running broker, by a reload of the server's configuration, and restores them
// five minutes later. Messages become due in these five minutes. No message is lost, the log has the reason in few
// lines, and the broker continues without a restart when the rights are back.
func TestRightsRevoked(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for _, r := range []revocation{
		{"create consumers", []string{"$JS.API.CONSUMER.CREATE.>"}, true, "messages wait in lanes", 20 * time.Second},
		{"pull", []string{"$JS.API.CONSUMER.MSG.NEXT.>"}, true, "messages wait in lanes", 20 * time.Second},
		{"ask for streams", []string{"$JS.API.STREAM.INFO.>"}, true, "the stream's leader does not report its time",
			20 * time.Second},
		{"publish into lanes", []string{"delaysys.>"}, false, "a lane does not acknowledge", 10 * time.Second},
		// For the broker, such a target is silent. The connection logs the refusal of the delivery.
		{"deliver", []string{"orders.>"}, false, "", time.Minute},
		{"purge", []string{"$JS.API.STREAM.PURGE.>", "$JS.API.STREAM.MSG.GET.>"}, false, "commit failed, will retry",
			10 * time.Second},
		{"everything", []string{">"}, true, "", time.Minute},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.try(t)
		})
	}
}

// A revocation takes rights away for five minutes.
type revocation struct {
	name string
	deny []string
	anew bool          // the test deletes the consumers, so that the broker needs new consumers
	says string        // message of the broker's log, besides the log line of the refusal
	back time.Duration // maximum time from the restored right to the last arrival
}

func (r revocation) try(t *testing.T) {
	users := func(deny ...string) []*server.User {
		publish := &server.SubjectPermission{Allow: []string{">"}, Deny: deny}
		return []*server.User{
			{Username: "broker", Password: "b", Permissions: &server.Permissions{Publish: publish}},
			{Username: "client", Password: "c"},
		}
	}
	natstest.BubbleWith(t, server.Options{Users: users()}, func(t *testing.T, s *natstest.Server) {
		log := harness.NewCountingLog()
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 5s 10s 1m 5m"), Log: slog.New(log)},
			nats.UserInfo("broker", "b"))
		c := harness.WrapConn(t, s.Connect(nats.UserInfo("client", "c")))
		c.Target("ORDERS", "orders.>")
		var want []string
		ask := func(when string) {
			for _, delay := range []string{"1s", "1m", "5m", "90s", "8m"} {
				body := when + "-" + delay
				c.Publish("delay."+delay+".orders.x", body)
				want = append(want, body)
			}
		}
		ask("before")
		time.Sleep(30 * time.Second)
		s.Reload(func(o *server.Options) { o.Users = users(r.deny...) })
		if r.anew {
			for _, level := range []string{"INTAKE", "1s", "5s", "10s", "1m", "5m"} {
				c.DeleteConsumer("DELAY_" + level)
			}
		}
		ask("meanwhile")
		time.Sleep(5 * time.Minute)
		lines := log.CountPrefix("")
		s.Reload(func(o *server.Options) { o.Users = users() })
		back := time.Now()
		ask("after")
		time.Sleep(20 * time.Minute)
		got := c.Arrivals("ORDERS")
		slices.Sort(want)
		if got, want := harness.Bodies(got), fmt.Sprint(want); "["+got+"]" != want {
			t.Errorf("arrived %s, want each once: %s", got, want)
		}
		r.checkInTime(t, got, back)
		if r.says != "" && log.CountPrefix(r.says) == 0 {
			t.Errorf("the log does not say %q", r.says)
		}
		if maxLines := 110; lines > maxLines {
			t.Errorf("%d lines in five minutes, want %d at most", lines, maxLines)
		}
		c.CheckEmpty()
	})
}

// checkInTime expects each message at its due time, or at most r.back after the right was restored.
func (r revocation) checkInTime(t *testing.T, got []harness.Arrival, back time.Time) {
	t.Helper()
	for _, a := range got {
		latest := a.Due
		if a.Due.Before(back.Add(r.back)) {
			latest = back.Add(r.back)
		}
		if a.At.Before(a.Due) || a.At.After(latest) {
			t.Errorf("%s arrived %s after it was due, %s after the right was restored", a.Body, a.At.Sub(a.Due),
				a.At.Sub(back))
		}
	}
}

// TestOnlyGrantedTargets runs two tenants with the grants of permissions/tenants.conf. With every form of request, each
// tenant reaches its own targets, and no target of the other tenant.
func TestOnlyGrantedTargets(t *testing.T) {
	t.Parallel()
	opts := natstest.Options(t, tenantsConf)
	natstest.BubbleWith(t, opts, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{HeaderTargets: []string{"public.>"}}, natstest.AdminLogin())
		admin := harness.WrapConn(t, s.Connect(natstest.AdminLogin()))
		all := admin.Subscribe(">")

		tenants := map[string]string{"orders": "payments", "payments": "orders"}
		accepted := make(map[string]int)
		for tenant, other := range tenants {
			own := connect(t, s, tenant)
			for _, subject := range requestForms(tenant + ".expire") {
				if !harness.Accepts(own.JS, subject, tenant) {
					t.Errorf("%s may not publish %s", tenant, subject)
				}
				accepted[tenant]++
			}
			for _, subject := range foreignSubjects(tenant, other) {
				if harness.Accepts(own.JS, subject, tenant) {
					t.Errorf("%s may publish %s", tenant, subject)
				}
			}
			// A target in a header is also refused.
			for _, subject := range requestForms(tenant + ".expire") {
				own.Publish(subject, tenant, "Delay-Target", other+".capture", "Delay-Deliver", "core")
			}
		}
		time.Sleep(30 * time.Minute)
		got := make(map[string]int)
		for _, m := range all.Arrivals() {
			for tenant := range tenants {
				if !strings.HasPrefix(m.Subject, tenant+".") {
					continue
				}
				if got[m.Subject]++; m.Body != tenant {
					t.Errorf("%s of %s reached %s", m.ID, m.Body, m.Subject)
				}
			}
		}
		for tenant := range tenants {
			if subject := tenant + ".expire"; got[subject] != accepted[tenant] {
				t.Errorf("%d messages arrived on %s, want %d", got[subject], subject, accepted[tenant])
			}
		}
	})
}

// requestForms returns the subjects of all forms of a request for a delay.
func requestForms(target string) []string {
	return []string{
		"delay.1s." + target, "delay.2s." + target, "delay.15m." + target, "delayin.1500ms." + target,
		fmt.Sprintf("delayat.%d.%s", time.Now().Add(5*time.Second).Unix(), target),
		"delayat.2000-01-01T00:00:07Z." + target,
	}
}

// foreignSubjects returns subjects that reach the other tenant: plain requests, requests in which a target is the token
// of the delay, requests without a target, and internal subjects.
func foreignSubjects(tenant, other string) []string {
	foreign := requestForms(other + ".capture")
	for _, target := range requestForms(tenant + ".x") {
		root, rest, _ := strings.Cut(target, ".")
		token, _, _ := strings.Cut(rest, ".")
		foreign = append(foreign, root+"."+token+"."+token+"."+tenant+"."+other,
			root+"."+tenant+"."+other+".capture",
			root+"."+tenant+"."+token+"."+other+".capture", root+"."+token)
	}
	foreign = append(foreign, "delaysys.hop.1s."+other+".capture", "delaysys.retry.1s."+other+".capture",
		"delaydead.expired."+other+".x", "delaysys.hop.1s."+tenant+".x", other+".capture", "delay.1s",
		"delay.timer."+tenant+"."+other+".capture")
	return foreign
}
