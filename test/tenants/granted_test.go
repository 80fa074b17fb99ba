package tenants

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestOnlyGrantedTargets runs two tenants with the grants of permissions/tenants.conf. Each reaches its own subjects in
// every form of request, and none of the other tenant's in any form.
func TestOnlyGrantedTargets(t *testing.T) {
	t.Parallel()
	opts := natstest.Options(t, tenantsConf)
	natstest.BubbleWith(t, opts, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{HeaderTargets: []string{"public.>"}}, natstest.Everything())
		admin := harness.Connected(t, s.Connect(natstest.Everything()))
		all := admin.Subscribe(">")

		tenants := map[string]string{"orders": "payments", "payments": "orders"}
		accepted := make(map[string]int)
		for tenant, other := range tenants {
			own := s.Connect(nats.UserInfo(tenant, tenant[:1]), nats.CustomInboxPrefix("_INBOX_"+tenant))
			js, err := jetstream.New(own)
			if err != nil {
				t.Fatal(err)
			}
			for _, subject := range forms(tenant + ".expire") {
				if !harness.Accepts(js, subject, tenant) {
					t.Errorf("%s may not publish %s", tenant, subject)
				}
				accepted[tenant]++
			}
			foreign := foreignTo(tenant, other)
			for _, subject := range foreign {
				if harness.Accepts(js, subject, tenant) {
					t.Errorf("%s may publish %s", tenant, subject)
				}
			}
			// A header does not help either.
			for _, subject := range forms(tenant + ".expire") {
				m := &nats.Msg{Subject: subject, Data: []byte(tenant),
					Header: nats.Header{"Delay-Target": {other + ".capture"}, "Delay-Deliver": {"core"}}}
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				if _, err := js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0)); err != nil {
					t.Errorf("publish with a header: %v", err)
				}
				cancel()
			}
		}
		time.Sleep(time.Hour)
		got := make(map[string]int)
		for _, m := range all.All() {
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
				t.Errorf("%d messages came on %s, want %d", got[subject], subject, accepted[tenant])
			}
		}
	})
}

// forms returns the subjects of all forms of a request for a delay.
func forms(target string) []string {
	return []string{
		"delay.1s." + target, "delay.2s." + target, "delay.15m." + target, "delayin.1500ms." + target,
		fmt.Sprintf("delayat.%d.%s", time.Now().Add(5*time.Second).Unix(), target),
		"delayat.2000-01-01T00:00:07Z." + target,
	}
}

// foreignTo returns subjects of the other tenant: in a plain request, with a token that is a target, without a target,
// and on internal subjects.
func foreignTo(tenant, other string) []string {
	foreign := forms(other + ".capture")
	for _, target := range forms(tenant + ".x") {
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

// TestOwnersShareLanes runs two instances that own different lanes by configuration (lease.Static). Together they do
// the work of one, and neither reads the other's lanes.
func TestOwnersShareLanes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		l := harness.Ladder(t, "1s 10s 1m 10m")
		a := harness.StartBroker(t, s,
			broker.Config{Ladder: l, Leaser: harness.Owns("DELAY_INTAKE", "DELAY_10s", "DELAY_10m")})
		b := harness.StartBroker(t, s, broker.Config{Ladder: l,
			Leaser: harness.Owns("DELAY_1s", "DELAY_1m", "DELAY_RETRY_1s", "DELAY_RETRY_5s", "DELAY_RETRY_30s")})
		const want = "DELAY_INTAKE DELAY_10s DELAY_10m | " +
			"DELAY_1s DELAY_1m DELAY_RETRY_1s DELAY_RETRY_5s DELAY_RETRY_30s"
		if got := harness.OwnedLanes(a) + " | " + harness.OwnedLanes(b); got != want {
			t.Errorf("they own %s, want %s", got, want)
		}
		c := harness.NewClient(t, s)
		in := c.Subscribe("orders.>")
		start := time.Now()
		c.Publish("delayin.11m11s.orders.x", "chained") // 10m and 10s are a's, 1m is b's
		c.Publish("delay.1s.orders.x", "second")
		harness.CheckExactly(t, in, start.Add(time.Second), 0)
		harness.CheckExactly(t, in, start.Add(11*time.Minute+11*time.Second), 1)
		for _, name := range []string{"DELAY_INTAKE", "DELAY_1s", "DELAY_1m", "DELAY_10m"} {
			st := c.Stream(name)
			if got := st.CachedInfo().State.Consumers; got != 1 {
				t.Errorf("%s has %d consumers, want its owner's alone", name, got)
			}
		}
		b.Stop()
		c.Publish("delay.1s.orders.x", "orphan")
		time.Sleep(time.Hour)
		if got := harness.Bodies(in.All()); got != "chained second" {
			t.Errorf("without the owner of DELAY_1s came %q, want nothing more", got)
		}
		harness.StartBroker(t, s, broker.Config{Ladder: l, Leaser: harness.Owns("DELAY_1s")})
		synctest.Wait()
		if got := harness.Bodies(in.All()); got != "chained orphan second" {
			t.Errorf("with an owner again came %q", got)
		}
	})
}
