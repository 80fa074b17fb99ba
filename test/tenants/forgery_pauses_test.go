package tenants

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
)

// TestForgedPauses: a tenant redirects acknowledgements of its own messages, and an earlier list of another broker, to
// the subjects of the list of pauses and of the paused messages. None is believed, before and after a restart.
func TestForgedPauses(t *testing.T) {
	t.Parallel()
	asTenants(t, broker.Config{}, nil, func(t *testing.T, admin, orders, payments *harness.Client) {
		o, err := inspect.Open(admin.NC, broker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		payments.Subscribe("payments.>")
		in := admin.Subscribe("payments.x")
		harness.MustPause(t, o, "payments.>")
		list, err := o.Pauses(context.Background())
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		earlier, err := admin.Stream(harness.PausedStream).GetLastMsgForSubject(context.Background(), "delaysys.pauses")
		if err != nil {
			t.Fatal(err)
		}
		harness.MustPause(t, o, "orders.>")
		for range 200 {
			for _, subject := range []string{"delaysys.pauses", "delaysys.paused." + list[0].ID + ".payments.x",
				"delaysys.paused.other.payments.x"} {
				if err := orders.NC.PublishRequest("delay.1m.orders.x", subject, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
		}
		again := &nats.Msg{Subject: "delaysys.pauses", Data: earlier.Data, Header: nats.Header{
			message.HeaderSeal: earlier.Header[message.HeaderSeal],
		}}
		none := &nats.Msg{Subject: "delaysys.pauses", Data: []byte(`{"version":9000000000000000000,"pauses":[]}`)}
		for _, m := range []*nats.Msg{again, none} {
			admin.Store(m) // as by a direct get
		}
		payments.Publish("delay.1s.payments.x", "real")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if all, err := o.Pauses(context.Background()); err != nil || len(all) != 2 {
			t.Errorf("paused: %v, %v, want both patterns", all, err)
		}
		if got := len(in.All()); got > 0 {
			t.Errorf("%d arrived while paused", got)
		}
		harness.MustResume(t, o, "payments.>")
		harness.MustResume(t, o, "orders.>")
		time.Sleep(10 * time.Minute)
		if got := harness.Bodies(in.All()); got != "real" {
			t.Errorf("%q arrived, want what payments asked for", got)
		}
		if letters := admin.Dead()[string(message.BadInternal)]; len(letters) != 400 {
			t.Errorf("%d dead letters that nobody has proven, want 400", len(letters))
		}
	})
}
