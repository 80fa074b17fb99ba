package schedules

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// rule is one rule of the server's scheduling. Its script act makes requests and records the results.
type rule struct {
	section, name string
	act           func(s *scene)
}

const sec = time.Second

const (
	subjectSeq        = "Nats-Expected-Last-Subject-Sequence"
	subjectSeqSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// requestScript returns a script that makes one request.
func requestScript(headers ...string) func(*scene) {
	return func(s *scene) { s.ask("schedules.a", "hi", headers...) }
}

// firingScript returns a script that requests a schedule for orders.x, and records the arrivals until a time.
func firingScript(when string, until time.Duration, headers ...string) func(*scene) {
	return func(s *scene) {
		s.schedule(when, headers...)
		s.recordAt(until)
	}
}

// changeScript returns a script that requests a schedule that is due after two seconds, calls then after one second,
// and records the arrivals until a time.
func changeScript(then func(*scene), until time.Duration) func(*scene) {
	return func(s *scene) {
		s.schedule(s.at(2 * sec))
		s.wait(sec)
		then(s)
		s.recordAt(until)
	}
}

// rules returns the rules of ADR-51, except where nats-server differs from ADR-51: there it returns the rule of the
// server. The rules run at the same time, each on its own subjects.
func rules() []rule {
	var all []rule
	for _, part := range []struct {
		section string
		rules   []rule
	}{
		{"Times", times()}, {"Intervals", intervals()}, {"Cron", crons()}, {"Time zones", zones()}, {"Targets", targets()},
		{"Time to live", ttls()}, {"Rollups", rollups()}, {"Sources", sources()}, {"Replacing", replacing()},
		{"Cancelling", cancelling()}, {"Headers that arrive", headers()}, {"Message ids", ids()},
		{"Expectations", expectations()}, {"Other requests", others()},
	} {
		for _, r := range part.rules {
			r.section = part.section
			all = append(all, r)
		}
	}
	return all
}

func times() []rule {
	at := func(after time.Duration) func(*scene) {
		return func(s *scene) { firingScript(s.at(after), 5*sec)(s) }
	}
	return []rule{
		{name: "`@at` ahead", act: at(2 * sec)},
		{name: "`@at` with a fraction of a second", act: at(2*sec + 345*time.Millisecond)},
		{name: "`@at` in the past: immediately", act: at(-time.Hour)},
		{name: "`@at` with an offset", act: func(s *scene) {
			firingScript("@at "+s.start.Add(2*sec).In(time.FixedZone("", 2*3600)).Format(time.RFC3339), 5*sec)(s)
		}},
		{name: "`@at` without a zone", act: firingScript("@at 2030-01-01T00:00:00", 0)},
		{name: "`@at` in unix seconds", act: firingScript("@at 1893456000", 0)},
		{name: "`@at`, two spaces", act: func(s *scene) { firingScript("@at  "+s.time(2*sec), 5*sec)(s) }},
		{name: "`@AT`", act: func(s *scene) { firingScript("@AT "+s.time(2*sec), 5*sec)(s) }},
		{name: "`@at` 400 days ahead", act: func(s *scene) { firingScript(s.at(400*24*time.Hour), 0)(s) }},
		{name: "a bare time", act: func(s *scene) { firingScript(s.time(2*sec), 5*sec)(s) }},
		{name: "a word", act: firingScript("tomorrow", 0)},
		{name: "an empty `Nats-Schedule`", act: firingScript("", 2*sec)},
	}
}

func intervals() []rule {
	odd := func(s *scene) {
		s.wait(300 * time.Millisecond)
		s.schedule("@every 1500ms")
		s.recordAt(6500 * time.Millisecond)
	}
	return []rule{
		{name: "`@every 2s`", act: firingScript("@every 2s", 7*sec)},
		{name: "`@every 1h30m`", act: firingScript("@every 1h30m", 3*time.Hour+sec)},
		{name: "`@every 1500ms`, published 0.3 s after a full second", act: odd},
		{name: "`@every 999ms`", act: firingScript("@every 999ms", 0)},
		{name: "`@every -5s`", act: firingScript("@every -5s", 0)},
		{name: "`@every 5`", act: firingScript("@every 5", 0)},
		{name: "`@every 1d`", act: firingScript("@every 1d", 0)},
		{name: "`@every 9000h`", act: firingScript("@every 9000h", 0)},
	}
}

func crons() []rule {
	var all []rule
	for _, c := range []struct {
		expr  string
		until time.Duration
	}{
		{"*/2 * * * * *", 6 * sec},
		{"0 30 1 * * *", 2 * time.Hour},
		{"0 0 0-2 ? JAN SAT,sun", 4 * time.Hour},
		{"5/20 * * * * *", 61 * sec},
		{"0 0 1 1 * mon", 2 * time.Hour},
		{"@hourly", 2*time.Hour + sec}, {"@daily", 0}, {"@midnight", 0},
		{"@weekly", 0}, {"@monthly", 0}, {"@yearly", 0}, {"@annually", 0},
		{"@reboot", 0}, {"* * * * *", 0}, {"* * * * * * *", 0}, {"0 0 0 30 2 *", 0}, {"60 * * * * *", 0},
		{"* * * * * 7", 0}, {"* * * L * *", 0}, {"* * * * * mon#2", 0}, {"5-1 * * * * *", 0}, {"*/0 * * * * *", 0},
		{"2-4/3 * * * * *", 62 * sec}, {"0 0 0 29 2 *", 0},
		{"TZ=UTC 0 0 0 * * *", 0}, {"H * * * * *", 0}, {"0 0 0 ? * ?", 0}, {"a * * * * *", 0},
	} {
		all = append(all, rule{name: "`" + c.expr + "`", act: firingScript(c.expr, c.until)})
	}
	return all
}

func zones() []rule {
	const zone = "Nats-Schedule-Time-Zone"
	in := func(expr, name string) func(*scene) { return firingScript(expr, 3*time.Hour, zone, name) }
	return []rule{
		{name: "cron in `Europe/Berlin`", act: in("0 30 3 * * *", "Europe/Berlin")},
		{name: "cron in `Asia/Kolkata`", act: in("0 0 8 * * *", "Asia/Kolkata")},
		{name: "cron in `UTC`", act: in("0 30 2 * * *", "UTC")},
		{name: "an unknown zone", act: in("0 30 3 * * *", "Nowhere/City")},
		{name: "an offset", act: in("0 30 3 * * *", "+02:00")},
		{name: "an empty zone", act: in("0 30 3 * * *", "")},
		{name: "`Local`", act: firingScript("0 30 3 * * *", 0, zone, "Local")},
		{name: "a zone with `@every`", act: firingScript("@every 2s", 5*sec, zone, "Europe/Berlin")},
		{name: "a zone with `@at`", act: func(s *scene) { firingScript(s.at(2*sec), 5*sec, zone, "Europe/Berlin")(s) }},
		{name: "a zone with `@daily`", act: firingScript("@daily", 3*time.Hour, zone, "America/Noronha")},
	}
}

// clocks returns rules of crons at a change of the local clocks, at 1:00 UTC.
func clocks(section string) []rule {
	var all []rule
	for _, expr := range []string{
		"0 30 1 * * *", "0 0 2 * * *", "0 30 2 * * *", "0 15,45 2 * * *", "0 0 3 * * *", "0 30 3 * * *", "0 0 * * * *",
		"0 */30 2-3 * * *",
	} {
		all = append(all, rule{
			section: section, name: "`" + expr + "` in `Europe/Berlin`",
			act: firingScript(expr, 4*time.Hour, "Nats-Schedule-Time-Zone", "Europe/Berlin"),
		})
	}
	return all
}

func targets() []rule {
	to := func(target string) func(*scene) {
		return func(s *scene) {
			s.ask("schedules.a", "hi", "Nats-Schedule", s.at(sec), "Nats-Schedule-Target", target)
			s.recordAt(4 * sec)
		}
	}
	return []rule{
		{name: "none", act: func(s *scene) { s.ask("schedules.a", "hi", "Nats-Schedule", s.at(sec)) }},
		{name: "empty", act: to("")},
		{name: "with a wildcard", act: to("orders.*")},
		{name: "with a space", act: to("orders. x")},
		{name: "with an empty token", act: to("orders..x")},
		{name: "the schedule's own subject", act: to("schedules.a")},
		{name: "another schedule's subject", act: to("schedules.b")},
		{name: "in another stream", act: to("elsewhere.x")},
		{name: "without a stream, and not allowed", act: to("nowhere.x")},
		{name: "given twice: the first counts", act: func(s *scene) {
			s.ask("schedules.a", "hi", "Nats-Schedule", s.at(sec), "Nats-Schedule-Target", "orders.x",
				"Nats-Schedule-Target", "orders.y")
			s.recordAt(4 * sec)
		}},
		{name: "in lower case: no header", act: func(s *scene) {
			s.ask("schedules.a", "hi", "Nats-Schedule", s.at(sec), "nats-schedule-target", "orders.x")
		}},
	}
}

func ttls() []rule {
	produced := func(ttl string) func(*scene) {
		return func(s *scene) {
			s.schedule(s.at(sec), "Nats-Schedule-TTL", ttl)
			s.recordAt(1500*time.Millisecond, "Nats-TTL")
		}
	}
	own := func(ttl string, due time.Duration) func(*scene) {
		return func(s *scene) { firingScript(s.at(due), due+3*sec, "Nats-TTL", ttl)(s) }
	}
	var all []rule
	for _, ttl := range []string{
		"1h0m0s", "90", "never", "2500ms", "0", "500ms", "soon", "-1", "876000h", "2562047h", "99999999999",
	} {
		all = append(all, rule{name: "`Nats-Schedule-TTL: " + ttl + "`", act: produced(ttl)})
	}
	return append(all, []rule{
		{name: "`Nats-TTL` after the time", act: own("10s", 2*sec)},
		{name: "`Nats-TTL` before the time", act: own("2s", 5*sec)},
		{name: "`Nats-TTL: never`", act: own("never", 2*sec)},
		{name: "`Nats-TTL: soon`", act: own("soon", 2*sec)},
		{name: "`Nats-TTL: 99999999999`", act: own("99999999999", 2*sec)},
		{name: "`Nats-TTL` of a repeating schedule ends it", act: firingScript("@every 2s", 9*sec, "Nats-TTL", "5s")},
		{name: "`Nats-TTL` and `Nats-Schedule-TTL`", act: func(s *scene) {
			s.schedule(s.at(sec), "Nats-TTL", "10s", "Nats-Schedule-TTL", "1h")
			s.recordAt(1500*time.Millisecond, "Nats-TTL")
		}},
	}...)
}

func rollups() []rule {
	with := func(header, value string) func(*scene) {
		return func(s *scene) {
			s.ask("orders.x", "before")
			s.schedule(s.at(sec), header, value)
			s.recordAt(3*sec, "Nats-Rollup")
		}
	}
	return []rule{
		{name: "`Nats-Schedule-Rollup: sub`", act: with("Nats-Schedule-Rollup", "sub")},
		{name: "`Nats-Schedule-Rollup: all`", act: with("Nats-Schedule-Rollup", "all")},
		{name: "`Nats-Schedule-Rollup: SUB`", act: with("Nats-Schedule-Rollup", "SUB")},
		{name: "`Nats-Rollup: sub` on the request", act: with("Nats-Rollup", "sub")},
		{name: "`Nats-Rollup: all` on the request", act: with("Nats-Rollup", "all")},
		{name: "`Nats-Rollup: some` on the request", act: with("Nats-Rollup", "some")},
	}
}

func sources() []rule {
	from := func(source string) func(*scene) {
		return func(s *scene) {
			s.ask("orders.source", "of the source")
			firingScript(s.at(sec), 3*sec, "Nats-Schedule-Source", source)(s)
		}
	}
	return []rule{
		{name: "`Nats-Schedule-Source` with a last message", act: from("orders.source")},
		{name: "`Nats-Schedule-Source` without one", act: from("orders.source-of-nothing")},
		{name: "`Nats-Schedule-Source` is the target", act: from("orders.x")},
		{name: "`Nats-Schedule-Source` with a wildcard", act: from("orders.*")},
	}
}

func replacing() []rule {
	by := func(then func(s *scene)) func(*scene) { return changeScript(then, 8*sec) }
	return []rule{
		{name: "by a later time", act: by(func(s *scene) { s.schedule(s.at(4 * sec)) })},
		{name: "by an earlier time", act: by(func(s *scene) { s.schedule(s.at(sec + sec/2)) })},
		{name: "by another target", act: by(func(s *scene) {
			s.ask("schedules.a", "other", "Nats-Schedule", s.at(4*sec), "Nats-Schedule-Target", "orders.y")
		})},
		{name: "by an interval", act: by(func(s *scene) { s.schedule("@every 3s") })},
		{name: "by a bad request: the schedule stays", act: by(func(s *scene) { s.schedule("tomorrow") })},
		{name: "another subject is another schedule", act: by(func(s *scene) {
			s.ask("schedules.b", "other", "Nats-Schedule", s.at(4*sec), "Nats-Schedule-Target", "orders.x")
		})},
		{name: "an interval by a time", act: func(s *scene) {
			s.schedule("@every 2s")
			s.wait(3 * sec)
			s.schedule(s.at(4 * sec))
			s.recordAt(9 * sec)
		}},
	}
}

func cancelling() []rule {
	by := func(then func(s *scene)) func(*scene) { return changeScript(then, 4*sec) }
	next := func(subject string, headers ...string) func(*scene) {
		return by(func(s *scene) { s.ask(subject, "", headers...) })
	}
	const scheduler, schedNext = "Nats-Scheduler", "Nats-Schedule-Next"
	return []rule{
		{name: "deleting the message of the acknowledgement", act: by(func(s *scene) {
			if err := s.stream(s.home).DeleteMsg(context.Background(), s.acks[0]); err != nil {
				s.note("it cannot be deleted")
			}
		})},
		{name: "purging its subject", act: by(func(s *scene) {
			if err := s.stream(s.home).Purge(context.Background(),
				jetstream.WithPurgeSubject(s.own("schedules.a"))); err != nil {
				s.note("it cannot be deleted")
			}
		})},
		{name: "an empty message on its subject", act: next("schedules.a")},
		{name: "a message on its subject", act: by(func(s *scene) { s.ask("schedules.a", "an ordinary message") })},
		{name: "`Nats-Schedule-Next: purge`, empty", act: next("schedules.b", scheduler, "schedules.a", schedNext, "purge")},
		{name: "`Nats-Schedule-Next: purge`, with a body", act: by(func(s *scene) {
			s.ask("schedules.b", "cancelled", scheduler, "schedules.a", schedNext, "purge")
		})},
		{name: "… on the target's subject: delivered immediately", act: by(func(s *scene) {
			s.ask("orders.x", "early", scheduler, "schedules.a", schedNext, "purge")
		})},
		{name: "… on its own subject", act: next("schedules.a", scheduler, "schedules.a", schedNext, "purge")},
		{name: "… of no schedule", act: next("schedules.b", scheduler, "schedules.none", schedNext, "purge")},
		{name: "… of a subject with a wildcard", act: next("schedules.b", scheduler, "schedules.*", schedNext, "purge")},
		{name: "… without `Nats-Scheduler`", act: next("schedules.b", schedNext, "purge")},
		{name: "… with a time", act: next("schedules.b", scheduler, "schedules.a", schedNext, "2030-01-01T00:00:00Z")},
		{name: "`Nats-Scheduler` alone", act: next("schedules.b", scheduler, "schedules.a")},
		{name: "… expecting the schedule's sequence", act: by(func(s *scene) {
			s.ask("schedules.b", "", scheduler, "schedules.a", schedNext, "purge",
				subjectSeq, fmt.Sprint(s.acks[0]), subjectSeqSubject, "schedules.a")
		})},
		{name: "… expecting another sequence", act: by(func(s *scene) {
			s.ask("schedules.b", "", scheduler, "schedules.a", schedNext, "purge",
				subjectSeq, "7777777", subjectSeqSubject, "schedules.a")
		})},
		{name: "an interval, deleted", act: func(s *scene) {
			s.schedule("@every 2s")
			s.wait(3 * sec)
			if err := s.stream(s.home).DeleteMsg(context.Background(), s.acks[0]); err != nil {
				s.note("it cannot be deleted")
			}
			s.recordAt(9 * sec)
		}},
		{name: "an interval, by an empty message", act: func(s *scene) {
			s.schedule("@every 2s")
			s.wait(3 * sec)
			s.ask("schedules.a", "")
			s.recordAt(9 * sec)
		}},
	}
}

func headers() []rule {
	headerScript := func(when string, until time.Duration, names []string, headers ...string) func(*scene) {
		return func(s *scene) {
			if when == "" {
				s.schedule(s.at(2*sec), headers...)
			} else {
				s.schedule(when, headers...)
			}
			s.recordAt(until, names...)
		}
	}
	own := []string{"Order", "order-id", "traceparent", "Nats-Trace-Dest", "Nats-Whatever"}
	return []rule{
		{name: "headers of the client", act: headerScript("", 3*sec, own,
			"Order", "1", "Order", "2", "order-id", "x", "traceparent", "00-1")},
		{name: "headers of the scheduler, fires once", act: headerScript("", 3*sec,
			[]string{"Nats-Scheduler", "Nats-Schedule-Next"})},
		{name: "headers of the scheduler, repeating",
			act: headerScript("@every 2s", 5*sec, []string{"Nats-Scheduler", "Nats-Schedule-Next"})},
		{name: "`Nats-Schedule` and headers with this prefix", act: headerScript("", 3*sec,
			[]string{"Nats-Schedule", "Nats-Schedule-Target", "Nats-Schedule-Own"}, "Nats-Schedule-Own", "x")},
		{name: "not `Nats-Msg-Id`", act: headerScript("", 3*sec, []string{"Nats-Expected-Stream"}, "Nats-Msg-Id", "1")},
		{name: "other headers of the server", act: headerScript("", 3*sec, own, "Nats-Whatever", "x")},
		{name: "an empty body", act: func(s *scene) {
			s.ask("schedules.a", "", "Nats-Schedule", s.at(sec), "Nats-Schedule-Target", "orders.x")
			s.recordAt(3 * sec)
		}},
	}
}

func ids() []rule {
	const id = "Nats-Msg-Id"
	return []rule{
		{name: "the same id again: a duplicate", act: func(s *scene) {
			s.schedule(s.at(2*sec), id, "1")
			s.schedule(s.at(4*sec), id, "1")
			s.recordAt(6 * sec)
		}},
		{name: "the same id after it has fired", act: func(s *scene) {
			s.schedule(s.at(sec), id, "1")
			s.wait(2 * sec)
			s.schedule(s.at(3*sec), id, "1")
			s.recordAt(6 * sec)
		}},
		{name: "the same id after three minutes", act: func(s *scene) {
			s.schedule(s.at(time.Hour), id, "1")
			s.wait(3 * time.Minute)
			s.schedule(s.at(2*time.Hour), id, "1")
			s.recordAt(3 * time.Hour)
		}},
		{name: "another id", act: func(s *scene) {
			s.schedule(s.at(2*sec), id, "1")
			s.schedule(s.at(4*sec), id, "2")
			s.recordAt(6 * sec)
		}},
		{name: "the same id on another subject", act: func(s *scene) {
			s.schedule(s.at(2*sec), id, "1")
			s.ask("schedules.b", "other", "Nats-Schedule", s.at(4*sec), "Nats-Schedule-Target", "orders.x", id, "1")
			s.recordAt(6 * sec)
		}},
		{name: "the same id, after a request with another id", act: func(s *scene) {
			s.schedule(s.at(2*sec), id, "1")
			s.schedule(s.at(3*sec), id, "2")
			s.schedule(s.at(4*sec), id, "1")
			s.recordAt(6 * sec)
		}},
	}
}

func expectations() []rule {
	after := func(then func(s *scene)) func(*scene) {
		return func(s *scene) {
			s.schedule(s.at(2 * sec))
			then(s)
			s.recordAt(7 * sec)
		}
	}
	return []rule{
		{name: "sequence 0, without a schedule", act: func(s *scene) {
			s.schedule(s.at(2*sec), subjectSeq, "0")
			s.recordAt(4 * sec)
		}},
		{name: "sequence 0, with a schedule", act: after(func(s *scene) {
			s.schedule(s.at(4*sec), subjectSeq, "0")
		})},
		{name: "the schedule's sequence", act: after(func(s *scene) {
			s.schedule(s.at(4*sec), subjectSeq, fmt.Sprint(s.acks[0]))
		})},
		{name: "another sequence", act: after(func(s *scene) {
			s.schedule(s.at(4*sec), subjectSeq, "7777777")
		})},
		{name: "sequence 0, after the schedule has fired", act: after(func(s *scene) {
			s.wait(3 * sec)
			s.schedule(s.at(4*sec), subjectSeq, "0")
		})},
		{name: "an interval's sequence, after two rounds", act: func(s *scene) {
			s.schedule("@every 2s")
			s.wait(5 * sec)
			s.schedule(s.at(8*sec), subjectSeq, fmt.Sprint(s.acks[0]))
			s.recordAt(12 * sec)
		}},
		{name: "this stream", act: func(s *scene) { firingScript(s.at(2*sec), 4*sec, "Nats-Expected-Stream", s.home)(s) }},
		{name: "another stream", act: func(s *scene) {
			firingScript(s.at(2*sec), 4*sec, "Nats-Expected-Stream", "OTHER")(s)
		}},
		{name: "a subject without a sequence", act: func(s *scene) {
			firingScript(s.at(2*sec), 4*sec, subjectSeqSubject, "schedules.b")(s)
		}},
		{name: "a sequence of another subject", act: func(s *scene) {
			firingScript(s.at(2*sec), 4*sec, subjectSeq, "0", subjectSeqSubject, "schedules.b")(s)
		}},
		{name: "another last message id", act: func(s *scene) {
			firingScript(s.at(2*sec), 4*sec, "Nats-Expected-Last-Msg-Id", "7")(s)
		}},
	}
}

func others() []rule {
	return []rule{
		{name: "without a reply subject", act: func(s *scene) {
			m := s.message("schedules.a", "hi", "Nats-Schedule", s.at(2*sec), "Nats-Schedule-Target", "orders.x")
			if err := s.nc.PublishMsg(m); err != nil {
				s.t.Fatal(err)
			}
			s.recordAt(4 * sec)
		}},
		{name: "an ordinary message", act: requestScript()},
		{name: "`Nats-Schedule-Target` alone", act: requestScript("Nats-Schedule-Target", "orders.x")},
		{name: "of an atomic batch", act: func(s *scene) {
			firingScript(s.at(2*sec), 4*sec, "Nats-Batch-Id", "b", "Nats-Batch-Sequence", "1", "Nats-Batch-Commit", "1")(s)
		}},
		{name: "a counter", act: func(s *scene) { firingScript(s.at(2*sec), 4*sec, "Nats-Incr", "1")(s) }},
		{name: "a header of a stream source", act: func(s *scene) {
			firingScript(s.at(2*sec), 4*sec, "Nats-Stream-Source", "X 1")(s)
		}},
		{name: "due at the same time: in order of publishing", act: func(s *scene) {
			for _, name := range []string{"c", "a", "b"} {
				s.ask("schedules."+name, name, "Nats-Schedule", s.at(2*sec), "Nats-Schedule-Target", "orders."+name)
			}
			s.recordAt(4 * sec)
		}},
		{name: "17 tokens in the subject", act: func(s *scene) {
			s.ask("schedules"+strings.Repeat(".a", 16), "hi", "Nats-Schedule", s.at(sec), "Nats-Schedule-Target", "orders.x")
			s.recordAt(3 * sec)
		}},
		{name: "70 headers", act: func(s *scene) {
			more := make([]string, 0, 140)
			for range 70 {
				more = append(more, "X", "y")
			}
			firingScript(s.at(2*sec), 4*sec, more...)(s)
		}},
		{name: "a header `Delay-Until`", act: func(s *scene) { firingScript(s.at(2*sec), 4*sec, "Delay-Until", "5")(s) }},
	}
}

// restarts returns rules during which the server and the broker are stopped for twenty seconds, at the same time for
// all rules.
func restarts() []rule {
	outageScript := func(when func(s *scene) string) func(*scene) {
		return func(s *scene) {
			s.schedule(when(s))
			s.recordAt(45 * sec)
		}
	}
	constant := func(when string) func(*scene) string { return func(*scene) string { return when } }
	all := []rule{
		{name: "`@at`, missed", act: outageScript(func(s *scene) string { return s.at(10 * sec) })},
		{name: "`@at`, ahead", act: outageScript(func(s *scene) string { return s.at(30 * sec) })},
		{name: "`@every 8s`, missed", act: outageScript(constant("@every 8s"))},
		{name: "cron, missed", act: outageScript(constant("*/8 * * * * *"))},
	}
	for i := range all {
		all[i].section = "Restarts"
	}
	return all
}
