package tenants

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
			own := connect(t, s, tenant)
			for _, subject := range forms(tenant + ".expire") {
				if !harness.Accepts(own.JS, subject, tenant) {
					t.Errorf("%s may not publish %s", tenant, subject)
				}
				accepted[tenant]++
			}
			for _, subject := range foreignTo(tenant, other) {
				if harness.Accepts(own.JS, subject, tenant) {
					t.Errorf("%s may publish %s", tenant, subject)
				}
			}
			// A header does not help either.
			for _, subject := range forms(tenant + ".expire") {
				own.Publish(subject, tenant, "Delay-Target", other+".capture", "Delay-Deliver", "core")
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
