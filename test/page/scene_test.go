package page_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/doctor"
	"delaybroker/broker/fault"
	"delaybroker/broker/inspect"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
	"delaybroker/broker/web"
	"delaybroker/broker/web/page"
	"delaybroker/levels"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

var shots = flag.String("page.shots", "", "directory for the screenshots")

const token = "0123456789abcdef0123"

// A scene is two instances of a broker under load, each with a page.
type scene struct {
	t   *testing.T
	url string // the URL of the first instance's page, with a final slash
	nc  *nats.Conn
	js  jetstream.JetStream
	log *harness.LineLog // log of the first instance's page

	soonDue time.Time // due time of the timer that cancelTimer cancels; set by cancelTimer
}

// startScene starts the server, both instances and the load.
func startScene(t *testing.T, access page.Access) *scene {
	t.Helper()
	s := natstest.RunListening(t)
	nc := s.Connect()
	c := &scene{t: t, nc: nc, js: s.JetStream(nc), log: harness.NewLineLog("")}
	cfg := broker.Config{
		Provision: true, Timers: true, Journal: time.Hour,
		Ladder:  must(levels.Parse("1s 5s 30s 1m 5m 10m 30m 1h 2h"))(t),
		Deliver: must(deliver.ParseModes("shop.>=request,auto"))(t),
		Rates:   must(deliver.ParseRates("shop.mail=50"))(t),
	}
	rules, _, err := config.ParseRetryLimits("shop.sms=1,20")
	natstest.NoError(t, err)
	cfg.AttemptRules = rules
	c.url = c.serve(s, cfg, "west", access, slog.New(slog.NewTextHandler(c.log, nil)))
	c.serve(s, cfg, "east", access, slog.New(slog.DiscardHandler))
	c.fill()
	c.load()
	return c
}

// must returns a function that returns the value, or fails the test if there is an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		natstest.NoError(t, err)
		return v
	}
}

// serve runs an instance with its page, as the command delaybroker does, and returns the URL of the page.
func (c *scene) serve(
	s *natstest.Server, cfg broker.Config, name string, access page.Access, log *slog.Logger,
) (url string) {
	t := c.t
	t.Helper()
	cfg.Instance, cfg.History = name, new(history.Book)
	dial := func() *nats.Conn { return s.Connect(nats.ReconnectBufSize(-1)) }
	b, err := broker.New(broker.Links{Read: s.Connect(), Write: dial(), Deliver: dial(), Control: dial()}, cfg)
	natstest.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	natstest.NoError(t, err)
	var durability atomic.Pointer[string]
	durability.Store(new("acknowledged means written to a file by one server: a crash of the server loses nothing"))
	ctx, cancel := context.WithCancel(context.Background())
	source := web.Source{
		Engine: b, LinkFaults: func() map[string]fault.Fault { return nil }, Stopping: ctx.Done(), Durability: &durability,
	}
	p := page.New(page.Config{
		Engine: b, Checks: source.Checks, History: pastHour(time.Now()), Durability: &durability,
		Version: "v1.0.0", Prefix: "delay",
		Rates: cfg.Rates, Access: access, Log: log,
		Host: func() doctor.Host { return doctor.Host{Version: "v1.0.0"} },
		Open: func(context.Context) (*inspect.Inspector, error) {
			nc, err := nats.Connect(s.Server().ClientURL(), nats.NoReconnect(), nats.Timeout(natstest.Timeout))
			if err != nil {
				return nil, err
			}
			return inspect.Open(nc, cfg)
		},
	})
	source.Page = p
	web := web.NewServer(log)
	web.Handler = source.Handler()
	// On a busy machine, Chromium takes longer than usual to send the first request of a connection.
	web.ReadHeaderTimeout, web.ReadTimeout = natstest.Timeout, natstest.Timeout
	c.runAll(ctx, cancel, b, p, web, listener)
	return "http://" + listener.Addr().String() + "/"
}

// runAll starts an instance and its page, and returns when the instance is ready. They stop at the end of the test.
func (c *scene) runAll(
	ctx context.Context, cancel func(), b *broker.Broker, p *page.Page, web *http.Server, listener net.Listener,
) {
	t := c.t
	t.Helper()
	var running sync.WaitGroup
	var failed error
	running.Go(func() { failed = b.Run(ctx) })
	running.Go(func() { p.Run(ctx) })
	running.Go(func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		web.Close()
		running.Wait()
		if failed != nil {
			t.Errorf("the broker ended with %v", failed)
		}
	})
	select {
	case <-b.Ready():
	case <-time.After(natstest.Timeout):
		t.Fatal("the broker is not ready")
	}
}

// pastHour returns an invented history of an instance for the screenshots. It has an hour of deliveries, with refusals
// in a part of the hour.
func pastHour(now time.Time) *history.Book {
	book, c := new(history.Book), history.Counts{Late: make([]uint64, len(stats.LatenessBounds())+1)}
	const ahead = time.Minute // the history includes the next minute, in which the cases run
	now = now.Truncate(history.FineStep).Add(ahead - time.Hour)
	book.Add(now, true, c)
	for step := range 360 {
		wave := 1 + 0.35*math.Sin(float64(step)/31) + 0.12*math.Sin(float64(step)/7) + 0.06*rand.Float64()
		c.Delivered += uint64(2100 * wave)
		c.Pending = uint64(500 + 260*math.Sin(float64(step)/55))
		late := append([]uint64(nil), c.Late...)
		late[0] += uint64(1300 * wave)
		late[1] += uint64(680 * wave)
		late[2] += uint64(100 * wave)
		late[3] += uint64(20 * wave)
		if step > 212 && step < 226 {
			c.Refused += uint64(90 + rand.IntN(300))
			late[5] += uint64(60 + rand.IntN(40))
		}
		c.Late = late
		book.Add(now.Add(time.Duration(step+1)*history.FineStep), true, c)
	}
	return book
}

// fill stores the messages, the timers and the dead letters that the cases expect.
func (c *scene) fill() {
	t := c.t
	t.Helper()
	ctx := t.Context()
	orders := jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, MaxMsgs: 10_000}
	if _, err := c.js.CreateStream(ctx, orders); err != nil {
		t.Fatal(err)
	}
	for n := range 1200 {
		c.publish(fmt.Sprintf("delayin.%dm.orders.expire", 2+n%58), fmt.Sprintf(`{"id":%d}`, n), nil)
	}
	for range 40 {
		c.publish("delay.1s.shop.mail", "{}", nil) // the target has no responder
	}
	for range 12 {
		c.publish("delay.1s.shop.sms", "{}", nil)
	}
	for n, body := range []string{
		hostile, strings.Repeat("<img src=x onerror=boom()>", 40_000), "\xff\xfe\x00<script>boom()</script>",
	} {
		header := nats.Header{"X-Hostile": {hostile}, "Delay-Until": {hostile}}
		c.publish(fmt.Sprintf("delay.5s.hostile.n%d", n), body, header)
	}
	for n := range 3 {
		c.publish(fmt.Sprintf("delayin.never.orders.typo%d", n), "{}", nil)
	}
	c.publish("delaytimer.nightly.reports.run", "{}", nats.Header{
		"Delay-Cron": {"0 3 * * *"}, "Delay-Time-Zone": {"Europe/Berlin"}, "Delay-Owner": {"reports"},
	})
	c.publish("delaytimer.beat.orders.beat", "{}", nats.Header{"Delay-Every": {"2s"}})
	c.publish("delaytimer.pulse.reports.pulse", "{}", nats.Header{"Delay-Every": {"1h"}})
	for n := range 30 {
		c.timer(fmt.Sprintf("order-%d", n), "orders.remind", "45m")
	}
}

// hostile is text that a page must not interpret as HTML.
const hostile = `<img src=x onerror="boom()"><script>boom()</script>`

func (c *scene) publish(subject, body string, header nats.Header) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), natstest.Timeout)
	defer cancel()
	if _, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: []byte(body)}); err != nil {
		c.t.Fatalf("publish on %s: %v", subject, err)
	}
}

func (c *scene) subscribe(subject string) *nats.Subscription {
	c.t.Helper()
	sub, err := c.nc.SubscribeSync(subject)
	if err == nil {
		err = c.nc.Flush()
	}
	natstest.NoError(c.t, err)
	return sub
}

func (c *scene) timer(key, target, wait string) {
	c.t.Helper()
	c.publish("delaytimer."+key+"."+target, `{"key":"`+key+`"}`, nats.Header{"Delay-For": {wait}})
}

// load publishes messages with a short delay until the test ends, so the brokers always have deliveries.
func (c *scene) load() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				for range 4 {
					_ = c.nc.Publish("delayin.1500ms.orders.paid", []byte(`{"paid":true}`)) // the cases need only most of the messages
				}
			}
		}
	})
	c.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
