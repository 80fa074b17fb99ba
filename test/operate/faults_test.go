package operate

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/doctor"
	"delaybroker/broker/fault"
	"delaybroker/broker/stats"
	"delaybroker/broker/web"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// scene is the scene of TestFaults and of TestOperatorsActs.
type scene struct {
	*harness.Client
	server *natstest.Server
	ending chan struct{} // closed at the end of the fault
}

// startScene publishes into a level, the intake and the timers. It returns 40 s later; the first message is due 20 s
// after that.
func startScene(t *testing.T, s *natstest.Server) scene {
	t.Helper()
	sc := scene{harness.WrapConn(t, s.Connect()), s, make(chan struct{})}
	sc.Target("T", "t.>")
	sc.Publish("delay.1m.t.level", "level")
	sc.Publish("delayin.70s.t.intake", "intake")
	sc.Publish("delaytimer.k.t.timer", "timer", "Delay-For", "1m")
	time.Sleep(40 * time.Second)
	return sc
}

// A faultCase is an act of an operator, or a limit of the account or the server, for which acknowledged messages wait.
type faultCase struct {
	cause fault.Cause
	name  string
	mute  string // the JetStream API requests that get the reply answer, or none
	reply func(m *nats.Msg)
	begin func(s scene)
	end   func(s scene)
	// letters is the number of dead letters after the fault.
	letters int
	says    string // what doctor says, if not the cause

	repaired bool // the broker repairs the fault by another consumer, before a message is overdue by ten seconds
	reopens  bool // the broker opens a connection again
}

// TestFaults: messages are acknowledged and become due during a fault. When they are overdue by ten seconds, /readyz of
// the active instance is not 200, one line of the log and doctor name the cause. After the fault, all messages are
// delivered within seconds, without a restart.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range faultCases() {
		if c.reopens {
			continue
		}
		t.Run(c.title(), func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

// TestFaultsThatReopenLinks has the other cases of TestFaults.
func TestFaultsThatReopenLinks(t *testing.T) { // not in parallel: see natstest.DropTimers
	for _, c := range faultCases() {
		if c.reopens {
			t.Run(c.title(), c.run)
		}
	}
}

func (c faultCase) title() string { return strings.TrimSpace(string(c.cause) + " " + c.name) }

func (c faultCase) run(t *testing.T) {
	natstest.BubbleWith(t, server.Options{Users: users(), NoAuthUser: "client"}, func(t *testing.T, s *natstest.Server) {
		log := harness.NewLineLog("messages wait in lanes")
		cfg := harness.MemberConfig(t)
		cfg.Ladder, cfg.Log, cfg.Timers, cfg.IntakeDurations = harness.Ladder(t, "1s 5s 1m"), log.Logger(), true, []string{}
		on := new(atomic.Bool)
		if c.mute != "" {
			reply := c.reply
			if reply == nil {
				reply = func(*nats.Msg) {}
			}
			on = harness.Intercept(t, s, &cfg, c.mute, reply)
		}
		b := harness.StartBroker(t, s, cfg, nats.UserInfo("broker", "b"))
		sc := startScene(t, s)
		on.Store(true)
		if c.begin != nil {
			c.begin(sc)
		}
		time.Sleep(5 * time.Second)
		want := "intake level timer"
		if sc.TryPublish("delay.1s.t.during", "during") == nil {
			want = "during " + want
		}
		time.Sleep(40 * time.Second)
		if c.repaired {
			harness.CheckBodies(t, sc.Arrivals("T"), want)
			if text := fmt.Sprint(stats.FailingChecks(readiness(b))); text != "[]" {
				t.Errorf("/readyz says %s after the repair", text)
			}
			return
		}
		checks := readiness(b)
		if text := fmt.Sprint(stats.FailingChecks(checks)); !strings.Contains(text, string(c.cause)) {
			t.Errorf("/readyz says %s, want the cause %q", text, c.cause)
		}
		named := strings.Contains(log.String(), fmt.Sprintf("cause=%q", c.cause))
		if got := log.Lines(); len(got) == 0 || len(got) > 3 || !named {
			t.Errorf("%d lines in the log, want 1 to 3 with the cause %q:\n%s", len(got), c.cause, log)
		}
		checkDoctor(t, s, cfg, c)
		on.Store(false)
		close(sc.ending)
		if c.end != nil {
			c.end(sc)
		}
		time.Sleep(15 * time.Second)
		harness.CheckBodies(t, sc.Arrivals("T"), want)
		if got := sc.Stream("DELAY_DEAD").CachedInfo().State.Msgs; got != uint64(c.letters) {
			t.Errorf("%d dead letters, want %d", got, c.letters)
		}
		if text := fmt.Sprint(stats.FailingChecks(readiness(b))); text != "[]" {
			t.Errorf("after the fault, /readyz says %s", text)
		}
	})
}

func readiness(b *harness.Instance) []stats.Check {
	return web.Source{
		Engine: b.Broker, LinkFaults: func() map[string]fault.Fault { return nil }, Stopping: make(chan struct{}),
		Durability: new(atomic.Pointer[string]),
	}.Checks()
}

func checkDoctor(t *testing.T, s *natstest.Server, cfg broker.Config, c faultCase) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want := c.says
	if want == "" {
		want = string(c.cause)
	}
	var said []string
	cfg.APIPrefix = "" // only the broker's requests are intercepted
	i := harness.InspectAs(t, s, cfg, "")
	_ = i.ReadKeys(ctx) // doctor reports a failure itself
	for _, f := range doctor.Gather(ctx, i, doctor.Host{SkipTrial: true}, nil).Findings() {
		if f.Severity == doctor.Critical && strings.Contains(f.Detail, want) {
			return
		}
		if f.Severity > doctor.Fine {
			said = append(said, f.Detail)
		}
	}
	t.Errorf("doctor says %q, want a critical finding with %q", said, want)
}

// users returns a user of the broker, who may not publish on these subjects, and a user with all rights.
func users(deny ...string) []*server.User {
	rights := &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: deny}}
	return []*server.User{
		{Username: "broker", Password: "b", Permissions: rights}, {Username: "client", Password: "client"},
	}
}

// revoke returns acts that revoke and restore the broker's right to publish on these subjects.
func revoke(subjects ...string) (begin, end func(scene)) {
	return func(s scene) { s.server.Reload(func(o *server.Options) { o.Users = users(subjects...) }) },
		func(s scene) { s.server.Reload(func(o *server.Options) { o.Users = users() }) }
}

var lanes = []string{"DELAY_INTAKE", "DELAY_TIMERS", "DELAY_1s", "DELAY_5s", "DELAY_1m"}

// each calls f with each consumer of the lanes, every second until the end of the fault.
func each(s scene, f func(stream, consumer string)) {
	go func() {
		for {
			for _, stream := range lanes {
				for name := range s.Stream(stream).ConsumerNames(context.Background()).Name() {
					f(stream, name)
				}
			}
			select {
			case <-s.ending:
				return
			case <-time.After(time.Second):
			}
		}
	}()
}

func faultCases() []faultCase {
	noCreate, createAgain := revoke("$JS.API.CONSUMER.CREATE.>")
	noPull, pullAgain := revoke("$JS.API.CONSUMER.MSG.NEXT.>")
	noLanes, lanesAgain := revoke("delaysys.>")
	noInfo, infoAgain := revoke("$JS.API.STREAM.INFO.>")
	deleteConsumers := func(s scene) {
		for _, stream := range lanes {
			s.DeleteConsumer(stream)
		}
	}
	var consumers, storage harness.Limit
	var removed jetstream.StreamConfig
	return []faultCase{
		{cause: fault.ConsumerPaused, repaired: true, begin: func(s scene) {
			for _, stream := range lanes {
				for name := range s.Stream(stream).ConsumerNames(context.Background()).Name() {
					_, err := s.Stream(stream).PauseConsumer(context.Background(), name, time.Now().Add(time.Hour))
					natstest.NoError(s.T, err)
				}
			}
		}},
		{cause: fault.ConsumerDeleted, name: "once", repaired: true, begin: deleteConsumers},
		{cause: fault.ConsumerDeleted, begin: func(s scene) {
			each(s, func(stream, consumer string) { _ = s.JS.DeleteConsumer(context.Background(), stream, consumer) })
		}},
		{cause: fault.ConsumerRefused, begin: func(s scene) {
			for _, stream := range lanes {
				_, err := s.JS.CreateConsumer(context.Background(), stream, jetstream.ConsumerConfig{Durable: "other"})
				natstest.NoError(s.T, err)
			}
			consumers = harness.AccountLimit(s.Client, s.server, func(l *server.JetStreamAccountLimits) { l.MaxConsumers = 1 })
			consumers.Reach()
			for _, stream := range lanes {
				for name := range s.Stream(stream).ConsumerNames(context.Background()).Name() {
					if name != "other" {
						natstest.NoError(s.T, s.JS.DeleteConsumer(context.Background(), stream, name))
					}
				}
			}
		}, end: func(scene) { consumers.Lift() }},
		{cause: fault.ConsumerSilent, mute: "CONSUMER.MSG.NEXT.", begin: deleteConsumers},
		{cause: fault.PermissionMissing, name: "create consumers", says: "were refused",
			begin: func(s scene) { noCreate(s); deleteConsumers(s) }, end: createAgain},
		{cause: fault.PermissionMissing, name: "pull", says: "were refused",
			begin: func(s scene) { noPull(s); deleteConsumers(s) }, end: pullAgain},
		{cause: fault.PermissionMissing, name: "publish into lanes", says: "were refused", begin: noLanes, end: lanesAgain},
		{cause: fault.PermissionMissing, name: "ask for streams", says: "were refused", begin: noInfo, end: infoAgain,
			reopens: true},
		{cause: fault.JetStreamOff, begin: func(s scene) {
			natstest.NoError(s.T, s.server.Server().GlobalAccount().DisableJetStream())
		}, end: func(s scene) {
			natstest.NoError(s.T, s.server.Server().GlobalAccount().EnableJetStream(nil, nil))
		}, says: "jetstream not enabled"},
		{cause: fault.NoRoom, begin: func(s scene) {
			storage = harness.StorageLimit(s.Client, s.server)
			storage.Reach()
		}, end: func(scene) { storage.Lift() }},
		{cause: fault.Other, name: "fewer streams are allowed than exist", repaired: true, begin: func(s scene) {
			harness.AccountLimit(s.Client, s.server, func(l *server.JetStreamAccountLimits) { l.MaxStreams = 2 }).Reach()
		}},
		{cause: fault.StreamSealed, letters: 1, begin: func(s scene) {
			s.Reconfigure("DELAY_DEAD", func(c *jetstream.StreamConfig) { c.Sealed = true })
			s.Publish("delay.1s.t.bad", "bad", "Delay-Expires", "never")
		}, end: func(s scene) {
			c := s.Remove("DELAY_DEAD")
			c.Sealed, c.DenyDelete, c.DenyPurge = false, false, false
			s.Create(c)
		}},
		{cause: fault.StreamMissing, begin: func(s scene) { removed = s.Remove("DELAY_5s") },
			end: func(s scene) { s.Create(removed) }, says: "DELAY_5s"},
		{cause: fault.ConsumerStalled, mute: "CONSUMER.MSG.NEXT.", begin: deleteConsumers, reply: func(m *nats.Msg) {
			go func() {
				for range 10 { // heartbeats, and no message
					_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"100"}, "Description": {"Idle Heartbeat"}}})
					time.Sleep(time.Second)
				}
			}()
		}},
		{cause: fault.NoAnswer, mute: "STREAM.INFO.DELAY_1m"},
		{cause: fault.NoLeader, mute: "STREAM.INFO.DELAY_1m", reply: func(m *nats.Msg) {
			_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response",` +
				`"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`))
		}},
		{cause: fault.PullRefused, mute: "CONSUMER.MSG.NEXT.", begin: deleteConsumers, reply: func(m *nats.Msg) {
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"409"},
				"Description": {"Exceeded MaxRequestMaxBytes of 10"}}})
		}},
	}
}
