package harness

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/schedules"
	"delaybroker/broker/timer/store"
	"delaybroker/test/natstest"
)

// ServeSchedules serves requests for schedules below orders until the test ends. It stores them with c.Timers.
func (c *TimerClient) ServeSchedules(t *testing.T) {
	service := schedules.NewService(schedules.Config{
		Conn: c.NC, Rules: message.ParseScheduleRules("schedules.orders.>=orders.>", nil),
		Store: schedules.Store{Timers: &c.Timers.Timers},
		Grace: time.Second, Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		service.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	synctest.Wait()
}

// TimerClient is a client that changes timers without a broker.
type TimerClient struct {
	*Client
	Timers *store.Timers
}

func NewTimerClient(c *Client) *TimerClient {
	names, err := message.NewNames("delay")
	natstest.NoError(c.T, err)
	api := jsapi.Client{Conn: c.NC, API: "$JS.API"}
	return &TimerClient{c, &store.Timers{
		Timers: change.Timers{
			Policy: message.Policy{Names: names}, API: api,
			Publish: func(ctx context.Context, m *nats.Msg) jsapi.Reply { return api.Publish(ctx, names.TimersStream(), m) },
		},
		Scan: lane.Scan{Conn: c.NC, JetStream: c.JS, APIPrefix: "$JS.API"},
	}}
}

// Do carries out a change, with a timeout of five seconds.
func (c *TimerClient) Do(w change.Change) change.Answer {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	a, err := c.Timers.Do(ctx, w)
	if err != nil {
		c.T.Errorf("%s %s: %v", w.Verb, w.Key, err)
	}
	return a
}

// NewChange returns a change of one generation of the timer with this key and the target orders.x. A generation of zero
// means any generation.
func NewChange(verb timer.Verb, key string, generation uint64) change.Change {
	return change.Change{Call: timer.Call{Verb: verb, Generation: generation}, Key: key, Target: "orders.x"}
}

// Check carries out a change and compares the outcome. It also compares the generation, unless the wanted generation is
// zero.
func (c *TimerClient) Check(w change.Change, want timer.Outcome, generation uint64) change.Answer {
	c.T.Helper()
	a := c.Do(w)
	if a.Outcome != want || a.Generation != generation && generation > 0 {
		c.T.Errorf("%s %s (%d) is %s %d, want %s %d: %s", w.Verb, w.Key, w.Generation, a.Outcome, a.Generation, want,
			generation, a.Why)
	}
	return a
}

// CopyTimers returns a copy of the configuration of t, with a new clock.
func CopyTimers(t *store.Timers) *store.Timers {
	return &store.Timers{Timers: change.Timers{Policy: t.Policy, API: t.API, Publish: t.Publish}, Scan: t.Scan}
}

// SetSecrets gives the client these secrets, with which it seals the rounds of series.
func (c *TimerClient) SetSecrets(secrets ...string) {
	c.T.Helper()
	streams, err := broker.StreamsOf(broker.Config{Prefix: "delay", Secrets: secrets})
	if err == nil {
		err = streams.ReadKeys(context.Background(), c.JS)
	}
	natstest.NoError(c.T, err)
	c.Timers.Policy = streams.Policy()
}

// NewSeriesClient returns a client that knows the keys, so that it can seal the rounds of series.
func NewSeriesClient(c *Client) *TimerClient {
	all := NewTimerClient(c)
	all.Timers.Policy = c.Policy("delay")
	return all
}
