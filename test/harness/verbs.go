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
	"delaybroker/broker/timer/schedules"
	"delaybroker/broker/timer/store"
)

// AnswersSchedules answers those who ask for schedules, with the timers and the clock of c.
func (c *TimerClient) AnswersSchedules(t *testing.T) {
	service := schedules.NewService(schedules.Config{
		Conn: c.NC, Grounds: message.ParseGrounds("schedules.orders.>=orders.>", nil),
		Store: schedules.Store{Timers: c.Timers},
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

// TimerClient is a client that asks for verdicts by itself.
type TimerClient struct {
	*Client
	Timers *store.Timers
}

func NewTimerClient(c *Client) *TimerClient {
	names, err := message.NewNames("delay")
	if err != nil {
		c.T.Fatal(err)
	}
	api := jsapi.Client{Conn: c.NC, API: "$JS.API"}
	return &TimerClient{c, &store.Timers{
		Policy: message.Policy{Names: names}, API: api,
		Publish: func(ctx context.Context, m *nats.Msg) jsapi.Reply { return api.Publish(ctx, names.TimersStream(), m) },
		Scan:    lane.Scan{Conn: c.NC, JetStream: c.JS, APIPrefix: "$JS.API"},
	}}
}

// Do carries out a change within five seconds.
func (c *TimerClient) Do(w store.Change) store.Answer {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	a, err := c.Timers.Do(ctx, w)
	if err != nil {
		c.T.Errorf("%s %s: %v", w.Verb, w.Key, err)
	}
	return a
}

// NewChange is a verb about a generation of a timer to orders.x; zero for whatever stands there.
func NewChange(verb timer.Verb, key string, generation uint64) store.Change {
	return store.Change{Request: timer.Request{Verb: verb, Generation: generation}, Key: key, Target: "orders.x"}
}

// Check carries out a change, and compares its outcome and its generation, unless that is zero.
func (c *TimerClient) Check(w store.Change, want timer.Outcome, generation uint64) store.Answer {
	c.T.Helper()
	a := c.Do(w)
	if a.Outcome != want || a.Generation != generation && generation > 0 {
		c.T.Errorf("%s %s (%d) is %s %d, want %s %d: %s", w.Verb, w.Key, w.Generation, a.Outcome, a.Generation, want,
			generation, a.Why)
	}
	return a
}

// CopyTimers has the same configuration, and a clock of its own.
func CopyTimers(t *store.Timers) *store.Timers {
	return &store.Timers{Policy: t.Policy, API: t.API, Publish: t.Publish, Scan: t.Scan}
}

// Holds gives a client's requests about series these secrets.
func (c *TimerClient) Holds(secrets ...string) {
	c.T.Helper()
	streams, err := broker.StreamsOf(broker.Config{Prefix: "delay", Secrets: secrets})
	if err == nil {
		err = streams.ReadKeys(context.Background(), c.JS)
	}
	if err != nil {
		c.T.Fatal(err)
	}
	c.Timers.Policy = streams.Policy()
}

// NewSeriesClient is a client that knows the secrets, and may write rounds.
func NewSeriesClient(c *Client) *TimerClient {
	all := NewTimerClient(c)
	all.Timers.Policy = c.Policy("delay")
	return all
}
