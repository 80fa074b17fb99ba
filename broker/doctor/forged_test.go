package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// lie answers without a seal as an instance that reads these lanes.
func (sc *scene) lie(lanes ...string) {
	sc.t.Helper()
	var all []string
	for _, stream := range lanes {
		all = append(all, fmt.Sprintf(`{"stream": %q, "live": true, "unopened": 3}`, stream))
	}
	lie := []byte(`{"instance": "liar", "version": "v0", "format": 4, "lanes": [` + strings.Join(all, ",") + `]}`)
	if _, err := sc.client.Subscribe("delayctl.status", func(m *nats.Msg) { _ = m.Respond(lie) }); err != nil {
		sc.t.Fatal(err)
	}
}

// TestForgedAnswerHidesNothing: a client that may publish below the subject of the answers cannot hide a lane without a
// reader.
func TestForgedAnswerHidesNothing(t *testing.T) {
	for _, d := range []diagnosis{
		{situation{name: "lanes of a broker that died", set: func(sc *scene) {
			sc.serve().crash()
			sc.lie("DELAY_INTAKE", "DELAY_1s", "DELAY_5s", "DELAY_5m", "DELAY_RETRY_1s", "DELAY_RETRY_30s", "DELAY_TIMERS")
		}}, "lanes", Critical, "no broker reads any of the 6 lanes", "start a broker: delaybroker serve"},
		{situation{name: "a lane without a reader", set: func(sc *scene) {
			sc.serve()
			sc.cfg.Ladder = harness.Ladder(sc.t, "1s 5s 7s 5m")
			sc.provision()
			sc.lie("DELAY_7s")
		}}, "lanes", Critical, "no broker reads DELAY_7s",
			"restart a broker: a broker does not read streams created after its start"},
	} {
		d.play(t, d.judge)
	}
}

// TestForgedUserIsNotBelieved: a client that may subscribe to the server's subject cannot make doctor check the
// permissions of another user.
func TestForgedUserIsNotBelieved(t *testing.T) {
	situation{name: "a forged answer about the user", user: natstest.LimitedUser, set: func(sc *scene) {
		sc.serve(nats.UserInfo(natstest.LimitedUser, natstest.LimitedUser))
		const lie = `{"data": {"user": "liar", "account": "x", "permissions": {}}}`
		if _, err := sc.client.Subscribe("$SYS.REQ.USER.INFO", func(m *nats.Msg) { _ = m.Respond([]byte(lie)) }); err != nil {
			sc.t.Fatal(err)
		}
	}}.play(t, func(t *testing.T, found []Finding) {
		for _, f := range found {
			if strings.Contains(f.Detail, "liar") || strings.Contains(f.Detail, "another user") {
				t.Errorf("got %s %s: %s; want no effect of the forged answer", f.Severity, f.Check, f.Detail)
			}
		}
	})
}
