package client_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker"
	"delaybroker/broker/client"
	"delaybroker/broker/client/clienttest"
	"delaybroker/levels"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// refusals lists how many deliveries each target refuses. With three attempts, a message to shop.down becomes a dead
// letter.
var refusals = map[string]int{
	"shop.once": 1, "shop.often": 5, "shop.down": 3, "shop.late": 1, "shop.round": 1, "shop.sick": 2,
}

// TestFakeRefusesLikeTheBroker: after Refuse, the fake delivers at the times of a real broker whose targets refuse as
// often, and has the same dead letters.
func TestFakeRefusesLikeTheBroker(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{
			Ladder: levels.Default(), IntakeDurations: levels.PlainDurations(), Timers: true,
		})
		c, nc := newClient(t, s, client.Config{})
		began := time.Now()
		got := &diary{began: began, now: time.Now}
		var mu sync.Mutex // guards refused
		refused := make(map[string]int)
		if _, err := nc.Subscribe("shop.>", func(m *nats.Msg) {
			mu.Lock()
			refused[m.Subject]++
			n := refused[m.Subject]
			mu.Unlock()
			if n > refusals[m.Subject] {
				got.recordRetry(m)
				_ = m.Respond(nil)
				return
			}
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{
				micro.ErrorHeader: {"closed"}, micro.ErrorCodeHeader: {"503"},
			}})
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		refusedScenario(t, c, got, time.Sleep)
		fake := clienttest.NewAt(t, client.Config{}, began)
		want := &diary{began: began, now: fake.Now}
		for target, n := range refusals {
			fake.Refuse(target, n, "the service says 503 closed")
		}
		fake.Handle("shop.>", want.recordRetry)
		refusedScenario(t, fake.Client(), want, func(d time.Duration) { fake.Advance(d) })
		slices.Sort(got.arrivals) // the broker delivers the messages of one moment in any order
		slices.Sort(want.arrivals)
		checkSame(t, got.arrivals, want.arrivals, 7)
		checkSame(t, got.receipts, want.receipts, 6)
		var letters, fakeLetters []string
		for _, a := range harness.WrapConn(t, nc).Arrivals("DELAY_DEAD") {
			letters = append(letters, a.Header.Get("Delay-Error-Code")+" "+a.Header.Get("Delay-Error"))
		}
		for _, l := range fake.Letters() {
			fakeLetters = append(fakeLetters, string(l.Code)+" "+l.Reason)
		}
		checkSame(t, letters, fakeLetters, 4)
	})
}

// recordRetry records an arrival without its generation: the fake has other numbers.
func (d *diary) recordRetry(m *nats.Msg) {
	a, _ := client.ParseArrival(m)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arrivals = append(d.arrivals, d.line("%s %q due %s, %d attempts, round %d", m.Subject, m.Data, a.Due, a.Attempts,
		a.Round))
}

func refusedScenario(t *testing.T, c *client.Client, d *diary, pass func(time.Duration)) {
	t.Helper()
	w := writer{c, d, d.now()}
	request := client.Deliver(client.ModeRequest)
	w.publishIn("shop.once", 2*time.Second, "one", request)
	w.publishIn("shop.often", 3*time.Second, "often", request)
	w.publishIn("shop.down", 4*time.Second, "down", request, client.MaxAttempts(3))
	w.publishIn("shop.late", 5*time.Second, "late", request, client.Expires(time.Second/2))
	w.publishIn("shop.round", 6*time.Second, "round", request, client.Key("k"), client.Every(6*time.Second),
		client.Rounds(2))
	// Two rounds of the series in a row become dead letters, and pause it.
	w.publishIn("shop.sick", 7*time.Second, "sick", request, client.Key("sick"), client.Every(20*time.Second),
		client.MaxAttempts(1), client.PauseAfter(2))
	state := func(name, key, target string) {
		timer, err := c.Timer(context.Background(), key, target)
		d.receipts = append(d.receipts, d.line("%s: the timer is %s, %v", name, timer.State, kindsOf(err)))
	}
	pass(6*time.Second + time.Millisecond)
	state("the first round is refused", "k", "shop.round")
	// A timer with the key and the target of a refused one is another timer: the refused message stays.
	for _, delay := range []time.Duration{time.Second, time.Hour} {
		_, err := c.In(t.Context(), "shop.often", delay, []byte(delay.String()), request, client.Key("often"))
		natstest.NoError(t, err)
		pass(2 * time.Second)
	}
	pass(3 * time.Minute)
	state("the last round is delivered", "k", "shop.round")
	state("two dead letters", "sick", "shop.sick")
	natstest.NoError(t, c.Resume(t.Context(), "sick", "shop.sick"))
	pass(30 * time.Second)
	state("resumed", "sick", "shop.sick")
	_, err := c.CancelPending(t.Context(), "sick", "shop.sick")
	natstest.NoError(t, err)
	pass(2 * time.Hour)
}
