package schedules

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// test/schedules compares this package with the server. The tests of this file cover the rules that the server does not
// have, and the guarantees for any input.

var (
	now   = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	rules = message.ParseScheduleRules("plans.orders.>=orders.>,plans.mail.>=mail.>", nil)
)

func judge(subject, body string, headers ...string) (Instruction, *refusal) {
	h := make(message.Header)
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = append(h[headers[i]], headers[i+1])
	}
	return Judge(rules, "DELAY_TIMERS", message.Incoming{Subject: subject, Header: h, Data: []byte(body)}, now)
}

// TestTargetsBelongToSubjects: the subject of a request determines the targets that it may name.
func TestTargetsBelongToSubjects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		subject, target string
		ok              bool
	}{
		{"plans.orders.a", "orders.x", true}, {"plans.orders.a", "mail.x", false}, {"plans.mail.a", "mail.x", true},
		{"plans.mail.a", "orders.x", false}, {"plans.orders.a", "orders", false}, {"plans.orders.a", "plans.mail.a", false},
		{"plans.other.a", "orders.x", false}, // belongs to no rule
	} {
		_, refused := judge(tt.subject, "", jetstream.ScheduleHeader, "@at 2026-12-24T18:00:00Z",
			jetstream.ScheduleTargetHeader, tt.target)
		if (refused == nil) != tt.ok || refused != nil && refused.ErrCode != badTarget.ErrCode {
			t.Errorf("a schedule on %s for %s: got the refusal %v", tt.subject, tt.target, refused)
		}
	}
}

// TestNoScheduleForASchedule: a delivery on the subject of a schedule would be a request, and end the schedule.
func TestNoScheduleForASchedule(t *testing.T) {
	t.Parallel()
	rules := message.ParseScheduleRules("plans.a.>=>,plans.b.>=>", nil)
	for _, target := range []string{"plans.a.y", "plans.b.y"} {
		h := message.Header{jetstream.ScheduleHeader: {"@at 2026-12-24T18:00:00Z"}, jetstream.ScheduleTargetHeader: {target}}
		_, refused := Judge(rules, "DELAY_TIMERS", message.Incoming{Subject: "plans.a.x", Header: h}, now)
		if refused == nil || refused.ErrCode != badTarget.ErrCode {
			t.Errorf("a schedule for %s: got %v, want a refusal of the target", target, refused)
		}
	}
}

// TestEndsBelongToSubjects: the subject of a request determines the schedules that it may end.
func TestEndsBelongToSubjects(t *testing.T) {
	t.Parallel()
	for scheduler, ok := range map[string]bool{
		"plans.orders.b": true, "plans.mail.b": false, "orders.x": false, "plans.orders.a": false, "plans.orders.*": false,
	} {
		w, refused := judge("plans.orders.a", "", jetstream.SchedulerHeader, scheduler,
			jetstream.ScheduleNextHeader, nextPurge)
		if (refused == nil) != ok || ok && (!w.Cancel || w.Schedule.Subject != scheduler) {
			t.Errorf("a request to end %s: got %+v, %v", scheduler, w, refused)
		}
	}
}

// TestScheduleRulesAreChecked: a meaningless setting is refused, with the correction.
func TestScheduleRulesAreChecked(t *testing.T) {
	t.Parallel()
	roots := []string{"delay", "delaysys"}
	for list, want := range map[string]string{
		"plans.>=orders.>":                           "",
		"plans.>=orders.>,plans.>=mail.>":            "", // one rule with two targets
		"plans.a.>=orders.>,plans.b.>=mail.>":        "",
		"plans.>":                                    "have no targets",
		"plans.>=orders.>,plans.a.>=mail.>":          "overlap",
		">=orders.>":                                 "begins with a plain token",
		"*.plans=orders.>":                           "begins with a plain token",
		"plans=orders.>":                             "at least two tokens",
		"$JS.>=orders.>":                             "must not begin with $ or _",
		"_INBOX.>=orders.>":                          "must not begin with $ or _",
		"delay.30m.>=orders.>":                       "must not begin with $ or _",
		"plans..>=orders.>":                          "begins with a plain token",
		"plans.>=orders..x":                          "target pattern",
		"plans.>=":                                   "target pattern",
		"plans.a.*.>=orders.>,plans.*.b.c=mail.>":    "overlap",
		"plans.>=orders.>,other.>=>,third.x=mail.>":  "",
		"plans.orders.>=orders.> plans.mail.>=mail.": "target pattern",
	} {
		err := message.ParseScheduleRules(list, nil).Check(roots)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the rules %s: got %v, want %q", list, err, want)
		}
	}
	if err := message.ParseScheduleRules("plans.>", []string{"public.>"}).Check(roots); err != nil {
		t.Errorf("a rule without targets, with allowed targets: got %v", err)
	}
}

// FuzzJudge: any input has an answer, and each accepted request can be stored and parsed.
func FuzzJudge(f *testing.F) {
	f.Add("plans.orders.a", "@at 2026-12-24T18:00:00Z", "orders.x", "Europe/Berlin", "1h", "sub", "", "")
	f.Add("plans.orders.a", "@every 1h30m0.5s", "orders.x", "", "never", "all", "orders.y", "10s")
	f.Add("plans.orders.a", "*/5 0-3,5 * JAN-mar ? MON", "orders.x", "UTC", "0", "", "", "never")
	f.Add("plans.orders.a", "@every 2540400h10m", "orders.x", "", "9223372036s", "", "", "2147483648")
	f.Add("plans.orders.a", "@at 0000-01-01T00:00:00+23:59", "orders.x", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, subject, schedule, target, zone, ttl, rollup, source, own string) {
		h := message.Header{jetstream.ScheduleHeader: {schedule}, jetstream.ScheduleTargetHeader: {target}, "X": {own}}
		for name, value := range map[string]string{
			jetstream.ScheduleTimeZoneHeader: zone, jetstream.ScheduleTTLHeader: ttl, jetstream.ScheduleRollupHeader: rollup,
			jetstream.ScheduleSourceHeader: source, jetstream.MsgTTLHeader: own,
		} {
			if value != "" {
				h[name] = []string{value}
			}
		}
		w, refused := Judge(rules, "DELAY_TIMERS", message.Incoming{Subject: subject, Header: h}, now)
		if refused != nil || w.Cancel {
			return
		}
		names, err := message.NewNames("delay")
		if err != nil {
			t.Fatal(err)
		}
		p := message.Policy{Names: names, Keys: message.NewKeys([]string{"a secret of the brokers"})}
		header, problem := entry.ScheduleEntry(p, w.Schedule, h, nil, now)
		if problem != nil || entry.CheckSchedule(p, w.Schedule.Subject) != nil {
			return // refused by a rule of the broker
		}
		e := entry.Parse(p, message.Incoming{
			Stream: "DELAY_TIMERS", Sequence: 1, At: now, Subject: names.ScheduleSubject(w.Schedule.Subject), Header: header,
		})
		if e.Kind != entry.Set || e.Problem != nil || e.Request.Target != target || e.Request.Due.Before(now) ||
			e.Origin().Scheduler != w.Schedule.Subject {
			t.Errorf("the entry is parsed as %+v, %v", e, e.Problem)
		}
	})
}
