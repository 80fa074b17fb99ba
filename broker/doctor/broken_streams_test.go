package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

const (
	runProvision   = "run delaybroker provision"
	editStream     = "nats stream edit DELAY_5s"
	recreateStream = "an edit cannot correct this drift; when the messages of the stream are no longer needed, run " +
		"nats stream rm DELAY_5s and delaybroker provision"
)

// drifted returns the diagnosis of a lane with a changed setting.
func drifted(name string, state Severity, detail, advice string, edit func(*jetstream.StreamConfig)) diagnosis {
	return diagnosis{situation{name: name, set: func(sc *scene) {
		sc.serve()
		sc.change("DELAY_5s", edit)
	}}, "drift", state, "DELAY_5s: " + detail, advice}
}

// brokenStreams are faults of streams.
var brokenStreams = []diagnosis{
	{situation{name: "no stream exists", set: func(*scene) {}}, "streams", Critical, "9 of 9 are missing: DELAY_1s",
		"start a broker, which creates the streams: delaybroker serve"},
	{situation{name: "no stream exists, and brokers may create none", set: func(sc *scene) { sc.cfg.Provision = false }},
		"streams", Critical, "9 of 9 are missing: DELAY_1s", runProvision},
	{situation{name: "a lane was deleted", set: func(sc *scene) {
		sc.serve()
		sc.remove("DELAY_5s")
		time.Sleep(20 * time.Second)
	}}, "streams", Critical, "1 of 9 are missing: DELAY_5s", runProvision},
	{situation{name: "the dead letters were deleted", set: func(sc *scene) {
		sc.serve()
		sc.remove("DELAY_DEAD")
	}}, "streams", Critical, "1 of 9 are missing: DELAY_DEAD", runProvision},
	{situation{name: "marks that cannot be read", set: func(sc *scene) {
		sc.provision()
		sc.change("DELAY_5s", func(c *jetstream.StreamConfig) { c.Metadata["delaybroker.level"] = "soon" })
		sc.launch() // this broker does not start
	}}, "streams", Critical, "no broker serves DELAY_5s: metadata delaybroker.level: ",
		"nats stream edit DELAY_5s, and restart the broker"},
	{situation{name: "marks were lost", set: func(sc *scene) {
		sc.serve()
		sc.change("DELAY_5s", func(c *jetstream.StreamConfig) { c.Metadata = nil })
	}}, "streams", Critical, "DELAY_5s has lost its metadata",
		"restore its metadata, as printed by the command: delaybroker streams"},
	{situation{name: "another program's stream has a name of the broker's", set: func(sc *scene) {
		sc.createForeign("DELAY_5s", "something.>")
	}}, "streams", Critical, "streams of another program have the names of the broker's streams: DELAY_5s",
		"choose another DELAY_PREFIX"},
	{situation{name: "another stream listens on all subjects of the broker", set: func(sc *scene) {
		sc.createForeign("AUDIT", "delay.>")
	}}, "streams", Critical, "the stream AUDIT listens on delay.>, and stores messages meant for DELAY_1s",
		"remove the subject from that stream: nats stream edit AUDIT"},
	{situation{name: "another stream listens on a subject of the broker", set: func(sc *scene) {
		sc.serve()
		sc.change("DELAY_5s", func(c *jetstream.StreamConfig) { c.Subjects = c.Subjects[1:] })
		sc.createForeign("AUDIT", "delay.5s.>")
	}}, "streams", Critical, "the stream AUDIT listens on delay.5s.>, and stores messages meant for DELAY_5s",
		"remove the subject from that stream: nats stream edit AUDIT"},
	{situation{name: "a stream of nats-server's own schedules", set: func(sc *scene) {
		sc.cfg.Timers, sc.cfg.Schedules = true, message.ParseScheduleRules("plans.>=orders.>", nil)
		sc.serve()
		sc.create(jetstream.StreamConfig{Name: "PLAN", Subjects: []string{"plans.>"}, AllowMsgSchedules: true})
	}}, "streams", Critical, "schedules on plans.> fire twice: from the broker, and from the stream PLAN",
		"remove plans.> from that stream: nats stream edit PLAN; the schedules stored in it still fire from there"},
	{situation{name: "another stream on the subjects of schedules", set: func(sc *scene) {
		sc.cfg.Timers, sc.cfg.Schedules = true, message.ParseScheduleRules("plans.>=orders.>", nil)
		sc.serve()
		sc.createForeign("AUDIT", "plans.a.>")
	}}, "streams", Critical, "the stream AUDIT listens on plans.a.>, a subject of DELAY_SCHEDULES, and refuses schedules",
		"remove the subject from that stream: nats stream edit AUDIT"},
	{situation{name: "a mapping moves messages to other subjects", set: func(sc *scene) {
		sc.serve()
		if err := sc.server.Server().GlobalAccount().AddMapping("delay.*.>", "other.$1.>"); err != nil {
			sc.t.Fatal(err)
		}
	}}, "streams", Critical, "are mapped to other.", "remove the mapping of delay.5s.delaybroker.doctor from the account"},
	{situation{name: "no leader", set: func(sc *scene) {
		sc.serve()
		sc.hideLeader("DELAY_5s")
	}}, "streams", Critical, "DELAY_5s does not answer: the stream has no leader",
		"start the servers with the replicas of DELAY_5s"},
	{situation{name: "a stream in memory", set: func(sc *scene) {
		sc.provision()
		s, err := sc.js.Stream(sc.t.Context(), "DELAY_5s")
		if err != nil {
			sc.t.Fatal(err)
		}
		sc.remove("DELAY_5s")
		c := s.CachedInfo().Config
		c.Storage = jetstream.MemoryStorage
		if _, err := sc.js.CreateStream(sc.t.Context(), c); err != nil {
			sc.t.Fatal(err)
		}
		sc.serve()
	}}, "durability", Critical, "in memory, so a restart of the servers loses the pending messages: DELAY_5s",
		"recreate these streams with file storage after they are empty"},
	{situation{name: "doctor has no secret", set: func(sc *scene) {
		sc.cfg.Secrets = []string{strings.Repeat("a", 32)}
		sc.serve()
		sc.cfg.Secrets = nil
	}}, "seal", Critical, "the streams keep no secret, and no secret is set",
		"set DELAY_SECRET to the other brokers' value"},
	{situation{name: "doctor has another secret", set: func(sc *scene) {
		sc.cfg.Secrets = []string{strings.Repeat("a", 32)}
		sc.serve()
		sc.publish(3, "delayin.10m.orders.x")
		time.Sleep(time.Minute)
		sc.cfg.Secrets = []string{strings.Repeat("b", 32)}
	}}, "seal", Critical, "the messages in DELAY_5m are sealed with a secret that is not set here",
		"set DELAY_SECRET to the brokers' value"},
	{situation{name: "drift of a retiring level", set: func(sc *scene) {
		sc.provision()
		sc.change("DELAY_5s", func(c *jetstream.StreamConfig) { c.MaxAge = 2 * time.Hour })
		sc.cfg.Ladder = harness.Ladder(sc.t, "1s 5m")
		sc.serve()
	}}, "drift", Critical, "DELAY_5s: max_age is 2h0m0s", editStream},
	drifted("window", Warn, "duplicate_window is 1s", editStream,
		func(c *jetstream.StreamConfig) { c.Duplicates = time.Second }),
	drifted("age", Critical, "max_age is 1h", editStream, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }),
	drifted("discard", Critical, "discard is old with a limit set", editStream, func(c *jetstream.StreamConfig) {
		c.Discard, c.MaxMsgs = jetstream.DiscardOld, 10_000
	}),
	drifted("size", Warn, "max_msg_size is -1", editStream, func(c *jetstream.StreamConfig) { c.MaxMsgSize = -1 }),
	drifted("subjects", Warn, "does not listen on 1 of its 2 subjects", runProvision, func(c *jetstream.StreamConfig) {
		c.Subjects = c.Subjects[:1]
	}),
	drifted("republish", Warn, "republish is set: messages are published on audit.> before they are due", editStream,
		func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "audit.>"}
		}),
	drifted("purge", Critical, "deny_purge is set", recreateStream,
		func(c *jetstream.StreamConfig) { c.DenyPurge = true }),
	drifted("ttl", Critical, "allow_msg_ttl is set", recreateStream,
		func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }),
}

// TestDoctorOnStreams: doctor reports that streams are missing or changed, or belong to another broker.
func TestDoctorOnStreams(t *testing.T) {
	natstest.SkipShort(t)
	for _, d := range brokenStreams {
		d.play(t, d.judge)
	}
}
