package tenants

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/broker/timer/entry"
	"delaybroker/test/natstest"
)

// This file has the scenes for the roles of permissions/tenants.conf. A scene returns an error and does not fail the
// test, because tests remove rights and expect an error.

// brokerWorks runs a broker as its four users, and makes the broker use all rights that it needs on a single server.
func brokerWorks(s *stage) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	received, err := s.listen(s.all, ">")
	if err != nil {
		return err
	}
	if err := s.plantDuplicate(ctx); err != nil {
		return err
	}
	b, stop, err := s.runBroker()
	if err != nil {
		return err
	}
	defer stop()
	early, err := s.requestAll(ctx)
	if err != nil {
		return err
	}
	time.Sleep(8 * time.Second) // "early" has been delivered; "late", which is before "early" in the lane, has not
	intake, err := s.js.Stream(ctx, early.Stream)
	if err != nil {
		return err
	}
	if _, err := intake.GetMsg(ctx, early.Sequence); !errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("a message that was delivered out of order is still stored: %v", err)
	}
	time.Sleep(5 * time.Minute)
	for subject, want := range map[string]int{
		"payments.core": 1, "payments.early": 1, "payments.late": 1, "payments.twice": 1, "orders.stored.hop": 1,
		"orders.full.x": 2, "payments.timer": 2, "orders.stored.plan": 1, "delaydead.bad_timer.payments.timer": 1,
		"delaydead.undelivered.orders.full.x": 1,
	} {
		if got := received()[subject]; got != want {
			return fmt.Errorf("%d messages on %s, want %d", got, subject, want)
		}
	}
	if err := s.readAhead(); err != nil {
		return err
	}
	if kept := b.Status().Journal; kept.Stored != 11 || kept.Dropped > 0 {
		return fmt.Errorf("the journal has %+v, want nine deliveries and two dead letters", kept)
	}
	if err := s.pauseAndResume(ctx, received); err != nil {
		return err
	}
	if err := s.fireExtra(ctx, received); err != nil {
		return err
	}
	if err := s.shareLanes(b, stop); err != nil {
		return err
	}
	return s.checkClean(ctx)
}

// readAhead returns an error if the broker may not read timers before they are due. Without this right, the broker
// reads timers at their due times.
func (s *stage) readAhead() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, refusal := range s.refused {
		if strings.Contains(refusal, "$JS.API.DIRECT.GET.DELAY_TIMERS") {
			return fmt.Errorf("timers are not read ahead: %s", refusal)
		}
	}
	return nil
}

// requestAll requests deliveries of all kinds. It returns the acknowledgement of the message that is due first.
func (s *stage) requestAll(ctx context.Context) (early *jetstream.PubAck, err error) {
	for _, subject := range []string{
		"delay.10s.payments.core", "delayin.65s.orders.stored.hop", "delay.10s.orders.full.x",
		"delayin.9s.payments.late", "delayin.100ms.payments.early",
	} {
		if early, err = s.js.Publish(ctx, subject, nil); err != nil {
			return nil, err
		}
	}
	for _, wait := range []string{"1s", "3m"} {
		m := &nats.Msg{Subject: "delaytimer." + wait + ".payments.timer", Header: nats.Header{"Delay-For": {wait}}}
		if _, err := s.js.PublishMsg(ctx, m); err != nil {
			return nil, err
		}
	}
	if _, err := s.js.Publish(ctx, "delaytimer.bad.payments.timer", nil); err != nil {
		return nil, err
	}
	tenant := s.JetStream(s.Connect(natstest.AdminLogin(), nats.CustomInboxPrefix("_INBOX_orders")))
	return early, s.schedule(ctx, tenant, "orders.stored.plan")
}

// schedule requests a schedule, as a client of the server's own scheduling does.
func (s *stage) schedule(ctx context.Context, js jetstream.JetStream, target string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := js.Publish(ctx, "schedules.orders.a", nil, jetstream.WithScheduleAt(time.Now().Add(time.Minute)),
		jetstream.WithScheduleTarget(target), jetstream.WithRetryAttempts(0))
	if err != nil {
		return fmt.Errorf("request a schedule: %w", err)
	}
	return nil
}

// pauseAndResume pauses and resumes a target, and expects the broker to store the end of the pause.
func (s *stage) pauseAndResume(ctx context.Context, received func() map[string]int) error {
	cfg, err := s.config()
	if err != nil {
		return err
	}
	o, err := inspect.Open(s.Connect(natstest.AdminLogin()), cfg)
	if err != nil {
		return err
	}
	if _, err := o.Pause(ctx, "payments.paused", pause.Hours{}); err != nil {
		return err
	}
	if _, err := s.js.Publish(ctx, "delayin.1s.payments.paused", nil); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	if received()["payments.paused"] > 0 {
		return errors.New("a message was delivered while its target was paused")
	}
	if _, err := o.Resume(ctx, "payments.paused"); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	if received()["payments.paused"] != 1 {
		return errors.New("the message was not delivered after the resumption")
	}
	if left, err := o.Pauses(ctx); err != nil || len(left) > 0 {
		return fmt.Errorf("a minute after the resumption, there still are pauses: %v, %v", left, err)
	}
	return nil
}

// fireExtra requests an extra delivery of a series, and cancels the series.
func (s *stage) fireExtra(ctx context.Context, received func() map[string]int) error {
	m := &nats.Msg{Subject: "delaytimer.k.orders.again", Header: nats.Header{"Delay-Every": {"1d"}}}
	if _, err := s.js.PublishMsg(ctx, m); err != nil {
		return err
	}
	nc := s.as("orders", "o")
	if err := askTimer(ctx, nc, "fire.k.orders.again", "fired"); err != nil {
		return err
	}
	if err := askTimer(ctx, nc, "cancel.k.orders.again", "cancelled"); err != nil {
		return err
	}
	time.Sleep(entry.ExtraTime + 2*time.Minute) // then the stream has no entry of the series
	if got := received()["orders.again"]; got != 1 {
		return fmt.Errorf("the series was delivered %d times, want once", got)
	}
	return nil
}

// askTimer requests a change of a timer, and expects this text in the answer.
func askTimer(ctx context.Context, nc *nats.Conn, ask, want string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := nc.RequestWithContext(ctx, "delayctl.timer."+ask, nil)
	if err != nil {
		return fmt.Errorf("request %s: %w", ask, err)
	}
	if !strings.Contains(string(answer.Data), want) {
		return fmt.Errorf("%s is answered %s %v", ask, answer.Data, answer.Header)
	}
	return nil
}

// shareLanes starts a second instance. It stands by. When the first instance stops, the second owns all lanes
// immediately.
func (s *stage) shareLanes(first *broker.Broker, stopFirst func() error) error {
	second, stopSecond, err := s.runBroker()
	if err != nil {
		return fmt.Errorf("a second instance: %w", err)
	}
	defer stopSecond()
	for range 60 {
		if owned(first) == 0 {
			return errors.New("the first instance lost its lanes")
		}
		time.Sleep(500 * time.Millisecond)
	}
	if n := owned(second); n > 0 {
		return fmt.Errorf("the stand-by works %d lanes", n)
	}
	answers, err := s.listen(s.all, "delayctl.status.me")
	if err != nil {
		return err
	}
	if err := s.all.PublishRequest("delayctl.status", "delayctl.status.me", nil); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond)
	if got := answers()["delayctl.status.me"]; got != 2 {
		return fmt.Errorf("%d instances answer an operator, want both", got)
	}
	if err := s.askAboutTimers(); err != nil {
		return err
	}
	all := owned(first) + owned(second)
	if err := stopFirst(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	time.Sleep(100 * time.Millisecond)
	if got := owned(second); got != all {
		return fmt.Errorf("the second instance has %d of %d lanes", got, all)
	}
	if err := stopSecond(); err != nil {
		return fmt.Errorf("stop the second: %w", err)
	}
	return nil
}

// askAboutTimers sends a list and a get to the control service, which one instance answers, and a ping, which both
// instances answer.
func (s *stage) askAboutTimers() error {
	const inbox = "_INBOX_orders.me."
	answers, err := s.listen(s.all, inbox+">")
	if err != nil {
		return err
	}
	asked := map[string]int{"delayctl.timers.payments": 1, "delayctl.timer.get.k.payments.x": 1, "$SRV.PING": 2}
	for subject := range asked {
		if err := s.all.PublishRequest(subject, inbox+subject, nil); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	for subject, want := range asked {
		if got := answers()[inbox+subject]; got != want {
			return fmt.Errorf("%s has %d answers, want %d", subject, got, want)
		}
	}
	return nil
}

// owned returns the number of lanes that an instance owns.
func owned(b *broker.Broker) int {
	n := 0
	for _, l := range b.Status().Lanes {
		if l.Owned {
			n++
		}
	}
	return n
}

// plantDuplicate stores a message that will hop, and another message under the id of its hop.
func (s *stage) plantDuplicate(ctx context.Context) error {
	ack, err := s.js.Publish(ctx, "delayin.2m.payments.twice", nil)
	if err != nil {
		return err
	}
	intake, err := s.js.Stream(ctx, ack.Stream)
	if err != nil {
		return err
	}
	m, err := intake.GetMsg(ctx, ack.Sequence)
	if err != nil {
		return err
	}
	id := message.ID{Stream: ack.Stream, Sequence: ack.Sequence, At: m.Time}
	_, err = s.js.Publish(ctx, "delay.1m.payments.decoy", nil,
		jetstream.WithMsgID(message.Request{ID: id.String()}.NatsMsgID(1)))
	return err
}

// checkClean fails if the lanes still have messages or consumers.
func (s *stage) checkClean(ctx context.Context) error {
	list := s.js.ListStreams(ctx)
	for info := range list.Info() {
		switch info.Config.Metadata["delaybroker.kind"] {
		case "", "dead", "owners", "journal":
			continue
		case "paused", "timers": // the list of pauses or the cursor
			info.State.Msgs -= min(info.State.Msgs, 1)
		}
		if info.State.Msgs > 0 || info.State.Consumers > 0 {
			return fmt.Errorf("%s still has %d messages and %d consumers", info.Config.Name, info.State.Msgs,
				info.State.Consumers)
		}
	}
	return list.Err()
}

// provisionAndRun provisions as the user delay-provision, and then calls runBroker.
func (s *stage) provisionAndRun() (stop func() error, err error) {
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	if err := s.provision(s.JetStream(s.as("provision", "s")), cfg); err != nil {
		return nil, err
	}
	_, stop, err = s.runBroker()
	return stop, err
}

// runBroker runs a broker as its four users until stop is called. Stop may be called several times.
func (s *stage) runBroker() (b *broker.Broker, stop func() error, err error) {
	cfg, err := s.config()
	if err != nil {
		return nil, nil, err
	}
	cfg.Log = slog.New(slog.DiscardHandler)
	links := broker.Links{
		Read: s.as("delay-read", "r"), Write: s.as("delay-write", "w"), Deliver: s.as("delay-deliver", "d"),
		Control: s.as("delay-control", "c"),
	}
	return runLinks(links, cfg)
}

// runLinks runs a broker on these connections until stop is called. Stop may be called several times.
func runLinks(links broker.Links, cfg broker.Config) (b *broker.Broker, stop func() error, err error) {
	if b, err = broker.New(links, cfg); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	select {
	case <-b.Ready():
		return b, stop, nil
	case err := <-done:
		done <- err
		return nil, nil, fmt.Errorf("the broker ended: %w", err)
	case <-time.After(time.Minute):
		return nil, nil, errors.Join(errors.New("the broker is not ready after a minute"), stop())
	}
}

// listen counts the received messages by subject.
func (s *stage) listen(nc *nats.Conn, subjects ...string) (received func() map[string]int, err error) {
	var mu sync.Mutex // guards got
	got := make(map[string]int)
	for _, subject := range subjects {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			got[m.Subject]++
		}); err != nil {
			return nil, err
		}
	}
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(got)
	}, nil
}

// clientWorks publishes a delay in every form, receives all deliveries, and sees its dead letter.
func clientWorks(s *stage) error {
	_, stop, err := s.runBroker()
	if err != nil {
		return err
	}
	defer stop()
	nc := s.as(s.user, s.password)
	received, err := s.listen(nc, s.user+".>", "delaydead.*."+s.user+".>")
	if err != nil {
		return err
	}
	js := s.JetStream(nc)
	for _, root := range []string{
		"delay.10s.", "delay.15m.", "delayin.1500ms.", fmt.Sprintf("delayat.%d.", time.Now().Add(time.Minute).Unix()),
		"delayin.soon.", "delaytimer.key.",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		m := &nats.Msg{Subject: root + s.user + ".x", Header: nats.Header{}}
		if root == "delaytimer.key." {
			m.Header.Set("Delay-For", "10m")
		}
		_, err := js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		cancel()
		if err != nil {
			return fmt.Errorf("publish on %s: %w", root+s.user+".x", err)
		}
	}
	want := 5
	if s.user == "orders" { // the other tenant may not send requests to the control service
		for ask, want := range map[string]string{"cancel.key.orders.y": "not_found", "get.key.orders.x": "pending"} {
			if err := askTimer(context.Background(), nc, ask, want); err != nil {
				return err
			}
		}
		want++
		if err := s.schedule(context.Background(), js, "orders.x"); err != nil {
			return err
		}
		if err := askTimer(context.Background(), nc, "get._schedule.schedules.orders.a", "pending"); err != nil {
			return err
		}
	}
	time.Sleep(20 * time.Minute) // the last delivery is due after 15 minutes
	if got := received(); got[s.user+".x"] != want || got["delaydead.bad_time."+s.user+".x"] != 1 {
		return fmt.Errorf("arrived: %v, want all %d and the dead letter", got, want)
	}
	return nil
}
