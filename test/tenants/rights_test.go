package tenants

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestRightsRevoked revokes one right of a running broker, by a reload of the server's configuration, and restores it
// five minutes later. Messages become due meanwhile. No message is lost, the log names the problem and stays short, and
// the broker continues without help when it has the right again.
func TestRightsRevoked(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	for _, r := range []revocation{
		{"create consumers", []string{"$JS.API.CONSUMER.CREATE.>"}, true, "the lane cannot be read", 20 * time.Second},
		{"pull", []string{"$JS.API.CONSUMER.MSG.NEXT.>"}, true, "the lane cannot be read", 20 * time.Second},
		{"ask for streams", []string{"$JS.API.STREAM.INFO.>"}, true, "the stream's leader does not report its time",
			20 * time.Second},
		{"publish into lanes", []string{"delaysys.>"}, false, "a lane does not acknowledge", 10 * time.Second},
		// To the broker such a target is silent; the connection logs that the delivery was refused.
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
	anew bool          // the consumers are deleted meanwhile, so that the broker needs new ones
	says string        // what the broker logs; the connection logs the refusal itself
	back time.Duration // how long after the right is restored everything has arrived
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
		c := harness.Connected(t, s.Connect(nats.UserInfo("client", "c")))
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
				c.DeleteConsumers("DELAY_" + level)
			}
		}
		ask("meanwhile")
		time.Sleep(5 * time.Minute)
		lines := log.Of("")
		s.Reload(func(o *server.Options) { o.Users = users() })
		back := time.Now()
		ask("after")
		time.Sleep(20 * time.Minute)
		got := c.Arrivals("ORDERS")
		slices.Sort(want)
		if got, want := harness.Bodies(got), fmt.Sprint(want); "["+got+"]" != want {
			t.Errorf("arrived %s, want each once: %s", got, want)
		}
		r.wantInTime(t, got, back)
		if r.says != "" && log.Of(r.says) == 0 {
			t.Errorf("the log does not say %q", r.says)
		}
		if maxLines := 110; lines > maxLines {
			t.Errorf("%d lines in five minutes, want %d at most", lines, maxLines)
		}
		c.CheckEmpty()
	})
}

// wantInTime wants each message when it is due, or soon after the right was restored.
func (r revocation) wantInTime(t *testing.T, got []harness.Arrival, back time.Time) {
	t.Helper()
	for _, a := range got {
		latest := a.Due
		if a.Due.Before(back.Add(r.back)) {
			latest = back.Add(r.back)
		}
		if a.At.Before(a.Due) || a.At.After(latest) {
			t.Errorf("%s came %s after it was due, %s after the right came back", a.Body, a.At.Sub(a.Due),
				a.At.Sub(back))
		}
	}
}
