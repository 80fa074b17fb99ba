package tenants

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// A tenant is a user in one of the configurations in test/permissions.
type tenant struct {
	name   string
	prefix string // the DELAY_PREFIX of the tenant's broker
	*harness.Client
	got *harness.Inbox
}

// connect returns a client with the user of a tenant, whose password is the first letter of the name.
func connect(t *testing.T, s *natstest.Server, name string, opts ...nats.Option) *harness.Client {
	t.Helper()
	opts = append(opts, nats.UserInfo(name, name[:1]), nats.CustomInboxPrefix("_INBOX_"+name))
	return harness.WrapConn(t, s.Connect(opts...))
}

// startTenants starts a server with a configuration, and one broker for each tenant.
func startTenants(t *testing.T, file string, prefixes map[string]string, f func(t *testing.T, orders,
	payments *tenant)) {
	t.Helper()
	natstest.BubbleWith(t, natstest.Options(t, file), func(t *testing.T, s *natstest.Server) {
		for name, prefix := range prefixes {
			harness.StartBroker(t, s, broker.Config{Prefix: prefix, Ladder: harness.Ladder(t, "1s 1m")},
				nats.UserInfo(name+"-broker", name[:1]+"b"), nats.CustomInboxPrefix("_INBOX_"+name+"-broker"))
		}
		tenants := make(map[string]*tenant)
		for name, prefix := range prefixes {
			c := connect(t, s, name)
			tenants[name] = &tenant{name: name, prefix: prefix, Client: c, got: c.Subscribe(name + ".>")}
		}
		f(t, tenants["orders"], tenants["payments"])
	})
}

// request publishes as this tenant, and reports whether the acknowledgement is a duplicate.
func (x *tenant) request(target, id string) (duplicate bool) {
	x.T.Helper()
	return x.Publish(x.prefix+".1m."+target, x.name, "Nats-Msg-Id", id).Duplicate
}

// checkApart publishes with the same id for both tenants. Each tenant receives its own message once, and no message of
// the other tenant.
func checkApart(t *testing.T, orders, payments *tenant) {
	t.Helper()
	for _, x := range []*tenant{orders, payments} {
		if x.request(x.name+".expire", "42") {
			t.Errorf("the id of %s counts as a duplicate", x.name)
		}
		if !x.request(x.name+".expire", "42") {
			t.Errorf("the second message of %s with the same id is not a duplicate", x.name)
		}
	}
	// No tenant can publish to the other tenant's subjects or lanes, with either prefix.
	for _, pair := range [][2]*tenant{{orders, payments}, {payments, orders}} {
		x, other := pair[0], pair[1]
		for _, subject := range []string{other.prefix + ".1m." + other.name + ".forged",
			x.prefix + ".1m." + other.name + ".forged", other.name + ".forged"} {
			// With an account each, the server accepts the publish, but the message stays in the tenant's account.
			if harness.Accepts(x.JS, subject, x.name) && x.prefix != other.prefix {
				t.Errorf("%s may publish on %s", x.name, subject)
			}
		}
	}
	time.Sleep(10 * time.Minute)
	for _, x := range []*tenant{orders, payments} {
		all := x.got.Arrivals()
		if len(all) != 1 || all[0].Subject != x.name+".expire" || all[0].Body != x.name {
			t.Errorf("%s got %d messages, %s; want its own", x.name, len(all), harness.Bodies(all))
		}
	}
}

// TestTenantsByAccount: each tenant has its own account and its own broker.
func TestTenantsByAccount(t *testing.T) {
	t.Parallel()
	startTenants(t, "../permissions/isolated-accounts.conf", map[string]string{"orders": "delay", "payments": "delay"},
		checkApart)
}

// TestTenantsByPrefix: each tenant has its own prefix and its own broker, in one account.
func TestTenantsByPrefix(t *testing.T) {
	t.Parallel()
	startTenants(t, "../permissions/isolated-prefixes.conf",
		map[string]string{"orders": "orders-delay", "payments": "payments-delay"}, checkApart)
}

// TestTenantsShareMessageIDs: tenants of one broker share their message ids, in one account or in several. The server
// acknowledges the second message with an id and does not store it.
func TestTenantsShareMessageIDs(t *testing.T) {
	t.Parallel()
	for file, name := range map[string]string{tenantsConf: "orders.", accountsConf: ""} {
		err := runOnAccounts(t, file, "auto", func(s *stage) error {
			stop, err := s.provisionAndRun()
			if err != nil {
				return err
			}
			defer stop()
			orders, payments := s.as("orders", "o"), s.as("payments", "p")
			received, err := s.listen(payments, "payments.>")
			if err != nil {
				return err
			}
			ctx := context.Background()
			if _, err := s.JetStream(orders).Publish(ctx, "delay.1m."+name+"x", nil,
				jetstream.WithMsgID("42")); err != nil {
				return err
			}
			ack, err := s.JetStream(payments).Publish(ctx, "delay.1m.payments.x", nil, jetstream.WithMsgID("42"))
			if err != nil {
				return err
			}
			if time.Sleep(10 * time.Minute); !ack.Duplicate || len(received()) != 0 {
				return errors.New("tenants do not share their ids: correct permissions/README.md")
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestRefusedPublishTimesOut: a publish without permission gets no answer and times out. The error handler of the
// connection receives an error with the subject.
func TestRefusedPublishTimesOut(t *testing.T) {
	t.Parallel()
	opts := natstest.Options(t, tenantsConf)
	natstest.BubbleWith(t, opts, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m")}, natstest.AdminLogin())
		reported := make(chan error, 1)
		orders := connect(t, s, "orders",
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { reported <- err }))
		start := time.Now()
		const timeout = 7 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		_, err := orders.JS.Publish(ctx, "delay.1s.payments.x", nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the publish ended with %v, want %v", err, context.DeadlineExceeded)
		}
		if got := time.Since(start); got != timeout {
			t.Errorf("the publish ended after %s, want %s, the timeout of its context", got, timeout)
		}
		select {
		case err := <-reported:
			if want := `Permissions Violation for Publish to "delay.1s.payments.x"`; !errors.Is(err,
				nats.ErrPermissionViolation) || !strings.Contains(err.Error(), want) {
				t.Errorf("the error handler got %q, want %s", err, want)
			}
		default:
			t.Error("the error handler got no error")
		}
	})
}

// TestAnswersGoAnywhere: NATS does not check the reply subject of a publish. A tenant can make the server put the
// acknowledgement of the tenant's request on any subject of the account. This may be a subject of another tenant, even
// after a delay, or an internal subject, where the acknowledgement has no effect. TestForgedAckLosesNothing covers the
// reply subject of another publish. Acknowledgements do not leave the account. The server refuses only subjects below
// $JS, where it would take the acknowledgement for a request.
func TestAnswersGoAnywhere(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		tenantsConf:                             "ack payments.capture, ack payments.capture, own payments.held",
		"../permissions/isolated-accounts.conf": "own payments.held",
	} {
		opts := natstest.Options(t, file)
		natstest.BubbleWith(t, opts, func(t *testing.T, s *natstest.Server) {
			brokers := [][]nats.Option{{natstest.AdminLogin()}}
			if file != tenantsConf {
				brokers = [][]nats.Option{{nats.UserInfo("orders-broker", "ob")},
					{nats.UserInfo("payments-broker", "pb")}}
			}
			for _, user := range brokers {
				harness.StartBroker(t, s, broker.Config{Ladder: harness.Ladder(t, "1s 1m")}, user...)
			}
			refused := make(chan error, 8)
			orders := connect(t, s, "orders",
				nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
			payments := connect(t, s, "payments")
			got := payments.Subscribe("payments.>")
			payments.Publish("delay.1m.payments.held", "own")

			for _, reply := range []string{
				"payments.capture", "delay.1s.payments.capture", "delaysys.hop.1s.payments.capture",
				"$JS.API.STREAM.PURGE.DELAY_1m", "$JS.API.STREAM.PURGE.DELAY_1m",
			} {
				natstest.NoError(t, orders.NC.PublishRequest("delay.1s.orders.x", reply, []byte("own")))
			}
			time.Sleep(10 * time.Minute)
			var all []string
			for _, a := range got.Arrivals() {
				if strings.HasPrefix(a.Body, `{"stream":"DELAY_1s","seq":`) {
					a.Body = "ack"
				}
				all = append(all, a.Body+" "+a.Subject)
			}
			slices.Sort(all)
			if got := strings.Join(all, ", "); got != want {
				t.Errorf("%s: payments got %q, want %q", file, got, want)
			}
			for range 2 {
				select {
				case err := <-refused:
					if !strings.Contains(err.Error(), `Publish with Reply of "$JS.API.STREAM.PURGE.DELAY_1m"`) {
						t.Errorf("%s: the error handler got %v, want a refused reply subject", file, err)
					}
				default:
					t.Errorf("%s: a publish with a reply subject below $JS.API was not refused", file)
				}
			}
		})
	}
}
