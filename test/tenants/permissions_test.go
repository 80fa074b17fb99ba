package tenants

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

const tenantsConf = "../permissions/tenants.conf"

// A role is a user of permissions/tenants.conf, with a scene that needs all of its rights.
type role struct {
	user, password string
	scene          func(*stage) error
	forbidden      []string // subjects that the user must not publish on
}

var roles = []role{
	{"delay-read", "r", brokerWorks, []string{
		"orders.x", "delay.1s.orders.x", "delaysys.hop.10s.orders.x", "$JS.API.STREAM.LIST",
		"$JS.API.STREAM.PURGE.DELAY_10s",
		"$JS.API.STREAM.MSG.GET.ORDERS", "$JS.API.CONSUMER.CREATE.ORDERS.x", "$JS.API.CONSUMER.DELETE.ORDERS.x",
		"$JS.API.CONSUMER.MSG.NEXT.ORDERS.x", "$JS.API.DIRECT.GET.ORDERS",
	}},
	{"delay-write", "w", brokerWorks, []string{"orders.x", "delay.10s.orders.x", "$JS.API.STREAM.INFO.DELAY_10s"}},
	{"delay-deliver", "d", brokerWorks, []string{
		"delaysys.hop.10s.orders.x", "delaydead.expired.orders.x", "delay.10s.orders.x", "mail.x",
		"$JS.API.STREAM.LIST", "$JS.ACK.x", "$SYS.x", "_INBOX.x",
	}},
	{"delay-control", "c", brokerWorks, []string{
		"orders.x", "delay.10s.orders.x", "delaysys.hop.10s.orders.x", "$JS.API.STREAM.CREATE.X",
		"$JS.API.STREAM.DELETE.DELAY_10s",
		"$JS.API.STREAM.PURGE.ORDERS", "$JS.API.STREAM.MSG.DELETE.ORDERS", "$JS.API.STREAM.MSG.GET.ORDERS",
	}},
	{"orders", "o", clientWorks, []string{
		"orders.x", "delay.10s.payments.x", "delay.10s", "delaydead.expired.orders.x", "delaysys.hop.10s.orders.x",
		"delaysys.pauses", "delaysys.paused.x.orders.x", "delayctl.status", "$JS.API.STREAM.LIST", "delaytimer.k.payments.x",
		"delaysys.armed", "delayctl.timer.cancel.k.payments.x", "delayctl.timers", "delayctl.cancel-all.orders",
		"schedules.payments.x", "schedules.x", "delayctl.timer.cancel._schedule.schedules.payments.x",
	}},
	{"payments", "p", clientWorks, []string{"payments.x", "delay.10s.orders.x",
		"$JS.API.CONSUMER.CREATE.DELAY_DEAD.x"}},
	{"provision", "s", provisioningWorks, []string{
		"orders.x", "delay.10s.orders.x", "$JS.API.STREAM.PURGE.DELAY_10s", "$JS.API.STREAM.CREATE.ORDERS",
		"$JS.API.STREAM.UPDATE.ORDERS",
	}},
}

// readOnCluster is a right that the broker needs only on a cluster: see TestReadUserOnCluster.
const readOnCluster = "$JS.API.STREAM.MSG.GET.*"

// accountsReply is a right that a broker needs only if tenants have their own accounts: see
// TestAnswersBetweenAccounts.
const accountsReply = "_R_.>"

// TestEveryGrantIsNeeded removes each line from the permissions in turn. Each removal either makes the scene of the
// role fail, or allows the role a publish that it must not make. The test of the operator is in cmd/delaybroker.
func TestEveryGrantIsNeeded(t *testing.T) { // not in parallel: see natstest.DropTimers
	natstest.SkipShort(t)
	for _, r := range roles {
		t.Run(r.user, func(t *testing.T) {
			if err := r.try(t); err != nil {
				t.Errorf("with all lines: %v", err)
			}
			for _, g := range natstest.Grants(t, tenantsConf, r.user) {
				if r.user == "delay-read" && g.Subject == readOnCluster || g.Subject == accountsReply {
					continue
				}
				err := r.try(t, g)
				if err == nil {
					t.Errorf("nothing breaks without %s", g)
				}
				t.Logf("without %s: %v", g, err)
			}
		})
	}
}

// try runs the scene of the role in a bubble, without some of the lines.
func (r role) try(t *testing.T, without ...natstest.Grant) (err error) {
	opts := natstest.Options(t, tenantsConf, without...)
	natstest.BubbleWith(t, opts, func(t *testing.T, on *natstest.Server) {
		s := &stage{Server: on, role: r}
		s.all = s.Connect(natstest.AdminLogin())
		s.js = s.JetStream(s.all)
		if err = s.prepare(); err != nil {
			t.Fatal(err)
		}
		if err = r.scene(s); err != nil {
			return
		}
		nc := s.as(r.user, r.password)
		for _, subject := range r.forbidden {
			if !s.refuses(nc, subject) {
				err = errors.Join(err, fmt.Errorf("it may publish on %s", subject))
			}
		}
	})
	return err
}

// A stage is a server with the users of tenants.conf, and the state that the scenes share.
type stage struct {
	*natstest.Server
	role
	all   *nats.Conn // the connection of a user with all rights
	js    jetstream.JetStream
	modes string // DELAY_DELIVER

	mu      sync.Mutex
	refused []string // the errors that the server reported to connections made by as
}

// as connects as a user, with the inbox prefix of that user.
func (s *stage) as(user, password string) *nats.Conn {
	_, inbox, isBroker := strings.Cut(user, "delay-")
	if !isBroker {
		inbox = user
	}
	return s.Connect(nats.UserInfo(user, password), nats.CustomInboxPrefix("_INBOX_"+inbox),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refused = append(s.refused, err.Error())
		}))
}

// refuses reports whether the server refuses a publish on a subject. It waits for the error, which the server sends
// asynchronously.
func (s *stage) refuses(nc *nats.Conn, subject string) bool {
	if err := nc.Publish(subject, nil); err != nil {
		return false
	}
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, refusal := range s.refused {
		if strings.Contains(refusal, fmt.Sprintf("Publish to %q", subject)) {
			return true
		}
	}
	return false
}

func (s *stage) config() (broker.Config, error) {
	ladder, err := levels.Parse("10s 1m")
	if err != nil {
		return broker.Config{}, err
	}
	modes, err := deliver.ParseModes(s.modes)
	return broker.Config{Ladder: ladder, Attempts: 2,
		AttemptRules: message.Rules[int]{{Pattern: "orders.patient", Value: 20}},
		DedupWindow:  time.Minute, Deliver: modes,
		Journal: time.Hour, Timers: true, ReplyPrefixes: []string{"_INBOX_orders"},
		Schedules: message.ParseScheduleRules("schedules.orders.>=orders.>", nil)}, err
}

// prepare creates the streams of the broker and of the tenants.
func (s *stage) prepare() error {
	cfg, err := s.config()
	if err != nil {
		return err
	}
	if err := s.provision(s.js, cfg); err != nil {
		return err
	}
	for _, c := range []jetstream.StreamConfig{
		{Name: "ORDERS", Subjects: []string{"orders.stored.>"}},
		{Name: "FULL", Subjects: []string{"orders.full.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew},
	} {
		if _, err := s.js.CreateStream(context.Background(), c); err != nil {
			return err
		}
	}
	_, err = s.js.Publish(context.Background(), "orders.full.x", nil)
	return err
}

// provision does the same as "delaybroker provision".
func (s *stage) provision(js jetstream.JetStream, cfg broker.Config) error {
	cfg.Provision = true
	streams, err := broker.StreamsOf(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _, err = streams.Provisioner(js).Provision(ctx, streams.Wanted(js.Conn().MaxPayload(), false))
	return err
}

// provisioningWorks provisions another ladder, which moves subjects between streams.
func provisioningWorks(s *stage) error {
	js := s.JetStream(s.as("provision", "s"))
	cfg, err := s.config()
	if err != nil {
		return err
	}
	if cfg.Ladder, err = levels.Parse("10s 2m"); err != nil {
		return err
	}
	if err := s.provision(js, cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), natstest.Timeout)
	defer cancel()
	stream, err := js.Stream(ctx, "DELAY_10s") // like the command nats stream edit
	if err != nil {
		return err
	}
	bounded := stream.CachedInfo().Config
	bounded.MaxBytes = 1 << 30
	_, err = js.UpdateStream(ctx, bounded)
	return err
}
