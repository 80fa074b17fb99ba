package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/stats"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// unbound has the values of an account without limits. limited returns unbound with a change.
var unbound = server.JetStreamAccountLimits{MaxStore: -1, MaxMemory: -1, MaxStreams: -1, MaxConsumers: -1}

func limited(change func(*server.JetStreamAccountLimits)) server.JetStreamAccountLimits {
	l := unbound
	change(&l)
	return l
}

// notEmbedded are the options of a server that is not embedded.
var notEmbedded = server.Options{ServerName: "n1"}

// brokenServers are faults of servers and accounts.
var brokenServers = []diagnosis{
	{situation{name: "JetStream is not enabled for the account", options: notEmbedded, set: func(sc *scene) {
		if err := sc.server.Server().GlobalAccount().DisableJetStream(); err != nil {
			sc.t.Fatal(err)
		}
	}}, "JetStream", Critical, "not enabled for account", "enable JetStream for this account"},
	{situation{name: "no such domain", options: notEmbedded, set: func(sc *scene) {
		sc.serve()
		sc.cfg.JSDomain = "hub"
	}}, "JetStream", Critical, "there is no answer to requests below $JS.hub.API",
		"set DELAY_JS_DOMAIN to the domain of a JetStream"},
	{situation{name: "JetStream does not answer", options: notEmbedded, set: func(sc *scene) {
		sc.proxy(func(string, *nats.Msg) bool { return true })
	}}, "JetStream", Critical, "JetStream does not answer: ",
		"start the missing servers: JetStream has no leader"},
	{situation{name: "a limit that an operator has set is reached", set: func(sc *scene) {
		sc.serve()
		sc.change("DELAY_5m", func(c *jetstream.StreamConfig) { c.MaxBytes = 3000 })
		sc.publish(100, "delay.5m.orders.x")
	}}, "storage", Critical, "DELAY_5m is full: ", "raise max_bytes of the stream: nats stream edit DELAY_5m"},
	{situation{name: "the configured limit of messages is reached", set: func(sc *scene) {
		sc.cfg.MaxPending = 100
		sc.serve()
		sc.publish(200, "delay.5m.orders.x")
	}}, "storage", Critical, "DELAY_5m is full: 100 messages", "raise DELAY_MAX_PENDING, and restart the broker"},
	{situation{name: "the configured limit of bytes is reached", set: func(sc *scene) {
		sc.cfg.MaxPendingBytes = 8000
		sc.serve()
		sc.publish(200, "delay.5m.orders.x")
	}}, "storage", Critical, "DELAY_5m is full: ", "raise DELAY_MAX_PENDING_BYTES, and restart the broker"},
	{situation{name: "the server is full", options: server.Options{ServerName: "n1", JetStreamMaxStore: 64 << 10},
		set: func(sc *scene) { sc.fill() }}, "storage", Critical, "the servers refuse to store: insufficient",
		"raise max_file_store of the servers: until then, they store no message"},
	{situation{name: "the embedded server is full", options: server.Options{JetStreamMaxStore: 64 << 10},
		set: func(sc *scene) { sc.fill() }}, "storage", Critical, "the servers refuse to store: insufficient",
		EmbeddedFullAdvice},
	{situation{name: "the disk is full", set: func(sc *scene) {
		sc.serve()
		sc.host.Probe = Probe{URL: "http://here/readyz", Checks: []stats.Check{{Name: "disk", Detail: "takes no data"}}}
	}}, "storage", Critical, "the broker at http://here/readyz reports: takes no data",
		"free space on the disk of DELAY_EMBEDDED_DIR: until then, the server stores no message"},
	{situation{name: "the account is full", options: notEmbedded, set: func(sc *scene) {
		sc.serve()
		sc.limit(limited(func(l *server.JetStreamAccountLimits) { l.MaxStore = 20_000 }))
		sc.publish(1000, "delay.5m.orders.x")
	}}, "storage", Critical, "of 20000 bytes", "raise the account's storage limit"},
	{situation{name: "the account has no more streams", options: notEmbedded, set: func(sc *scene) {
		sc.serve()
		sc.limit(limited(func(l *server.JetStreamAccountLimits) { l.MaxStreams = 9 }))
		sc.cfg.Ladder = harness.Ladder(sc.t, "1s 5s 7s 5m")
	}}, "JetStream", Critical, "streams: the broker needs 10, the limit is 9",
		"raise max_streams of the account, or use fewer DELAY_LEVELS, fewer waits in DELAY_RETRY, DELAY_TIMERS=off, " +
			"DELAY_JOURNAL=off"},
	{situation{name: "the account has no more consumers", options: notEmbedded, set: func(sc *scene) {
		sc.provision()
		sc.limit(limited(func(l *server.JetStreamAccountLimits) { l.MaxConsumers = 1 }))
		sc.addConsumer("DELAY_5s")
		sc.launch()
		time.Sleep(20 * time.Second)
	}}, "lanes", Critical, "consumer refused: create the consumer",
		"raise max_consumers of the stream or the account, or remove other consumers"},
}

// TestDoctorOnServers: doctor reports that JetStream does not answer, or has no room.
func TestDoctorOnServers(t *testing.T) {
	natstest.SkipShort(t)
	for _, d := range brokenServers {
		d.play(t, d.judge)
	}
}

// TestDoctorOnRights: the finding names the missing permission of the broker's user, with its subject. Doctor waits for
// no timeout.
func TestDoctorOnRights(t *testing.T) {
	natstest.SkipShort(t)
	const grantAdvice = "grant the broker's user these subjects"
	publish := func(p server.SubjectPermission) server.Permissions { return server.Permissions{Publish: &p} }
	for _, d := range []diagnosis{
		{situation{name: "no JetStream", rights: publish(server.SubjectPermission{
			Allow: []string{"orders.>", "$SYS.REQ.USER.INFO"},
		})}, "rights", Critical, "$JS.API.CONSUMER.CREATE.*.*", grantAdvice},
		{situation{name: "no request for its own user", rights: publish(server.SubjectPermission{
			Allow: []string{"orders.>"},
		})}, "rights", Critical, "Publish to $JS.API.STREAM.LIST", grantAdvice},
		{situation{name: "no purge of one stream", rights: natstest.DenyPublish("$JS.API.STREAM.PURGE.DELAY_5s")},
			"rights", Critical, "refused: Publish to $JS.API.STREAM.PURGE.DELAY_5s", grantAdvice},
		{situation{name: "no request about one stream",
			rights: natstest.DenyPublish("$JS.API.*.*.DELAY_5s", "$JS.API.STREAM.INFO.DELAY_5s")},
			"rights", Critical, "Publish to $JS.API.STREAM.INFO.DELAY_5s", grantAdvice},
		{situation{name: "no hops", rights: natstest.DenyPublish("delaysys.>")},
			"rights", Critical, "refused: Publish to delaysys.", grantAdvice},
		{situation{name: "no answers", rights: server.Permissions{
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_other.>"}},
		}}, "rights", Critical, "Subscription to _INBOX.", grantAdvice},
		{situation{name: "no request that only doctor sends", rights: natstest.DenyPublish("$JS.API.INFO")},
			"rights", Skipped, "the server refused requests that only doctor sends: $JS.API.INFO", operatorAdvice},
		{situation{name: "no reading of timers ahead", rights: natstest.DenyPublish("$JS.API.DIRECT.GET.>"),
			set: func(sc *scene) {
				sc.cfg.Timers = true
			}}, "rights", Warn, "Publish to $JS.API.DIRECT.GET.DELAY_TIMERS",
			"grant the broker's user this subject, so that many due timers cost less"},
	} {
		configure := d.set
		d.user, d.set = natstest.LimitedUser, func(sc *scene) {
			if configure != nil {
				configure(sc)
			}
			sc.serve()
		}
		d.play(t, d.judge)
	}
}

// TestDoctorAsAnother: if doctor and the broker have different users, the user of doctor does not need the broker's
// permissions.
func TestDoctorAsAnother(t *testing.T) {
	commandsDenied := natstest.DenyPublish("$JS.API.STREAM.PURGE.*", "delaysys.owners.>", "delaysys.pauses")
	infoDenied := natstest.DenyPublish("$JS.API.STREAM.PURGE.*", "$JS.API.INFO")
	for _, tt := range []struct {
		name           string
		rights         server.Permissions
		brokerUser     string
		state          Severity
		detail, advice string
	}{
		{"another user", commandsDenied, "all", Fine,
			"limited differs from the running brokers' user (all); the user may not use pause and resume", ""},
		{"another user, who may not send all requests", infoDenied, "all", Skipped,
			"the server refused requests of doctor: $JS.API.INFO",
			operatorAdvice},
		{"the broker's user", natstest.DenyPublish("$JS.API.STREAM.PURGE.*"), natstest.LimitedUser, Critical,
			"$JS.API.STREAM.PURGE.*",
			"grant the broker's user these subjects"},
	} {
		situation{name: tt.name, rights: tt.rights, user: natstest.LimitedUser, set: func(sc *scene) {
			sc.serve(nats.UserInfo(tt.brokerUser, tt.brokerUser))
		}}.play(t, func(t *testing.T, findings []Finding) {
			found := false
			for _, f := range findings {
				found = found || f.Check == "rights" && f.Severity == tt.state && strings.Contains(f.Detail, tt.detail) &&
					f.Advice == tt.advice
				if f.Severity > max(tt.state, Fine) {
					t.Errorf("got %s %s: %s; want no finding worse than %s", f.Severity, f.Check, f.Detail, tt.state)
				}
			}
			if !found {
				t.Errorf("no finding %s with %q and %q in %+v", tt.state, tt.detail, tt.advice, findings)
			}
		})
	}
}
