package entry_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// TestSetSeries: a recurring set has a table. Its first round is due by that table, or at the requested time.
func TestSetSeries(t *testing.T) {
	for _, tt := range []struct {
		want  time.Duration
		table string
		lines []string
	}{
		{15 * time.Minute, "every 15m", []string{"Delay-Every: 15m"}},
		{time.Hour, "every 15m", []string{"delay-every: 15m", "Delay-For: 1h", "Delay-Rounds: 3", "X-Mine: 1"}},
		{0, "every 1d", []string{"Delay-Every: 1d", "Delay-For: 0s", "Delay-Missed-Rounds: skip"}},
		{2 * time.Hour, "every 1d", []string{"Delay-Every: 1d", "Delay-Until: 2026-11-20T11:00:00.123456789Z"}},
		{-1, "cron 0 3 * * * Europe/Berlin", []string{"Delay-Cron: 0 3 * * *", "Delay-Time-Zone: Europe/Berlin"}},
		{-1, "cron @daily", []string{"Delay-Cron: @daily", "Delay-Jitter: 1h", "Delay-Last: 2030-01-01T00:00:00Z"}},
	} {
		e := entry.Parse(policy, timerEntry(timerSubject, 7, header(tt.lines...)))
		r := e.Pending
		if e.Kind != entry.Set || e.Problem != nil || r.Series == nil {
			t.Errorf("%q: %+v", tt.lines, e)
			continue
		}
		if got := r.Due.Sub(storedAt); tt.want >= 0 && got != tt.want || got < 0 || r.Series.Table.String() != tt.table ||
			r.Origin().Series != 7 || r.Origin().Round != 1 {
			t.Errorf("%q: %+v, %s, due after %s, want %s", tt.lines, r.Origin(), r.Series.Table, got, tt.want)
		}
	}
}

// TestBadSeries: a set with a bad table becomes a dead letter that names the header and the correction.
func TestBadSeries(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		code  message.Code
		hint  string
	}{
		{[]string{"Delay-Every: 1"}, message.BadTimer, "Delay-Every: "},
		{[]string{"Delay-Every: 999ms"}, message.BadTimer, "at least 1s"},
		{[]string{"Delay-Every: "}, message.BadTimer, "Delay-Every is empty"},
		{[]string{"Delay-Every: 1m", "Delay-Every: 2m"}, message.TimeTwice, "2 times"},
		{[]string{"Delay-Every: 1m", "Delay-Cron: @daily"}, message.BadTimer, "one of them"},
		{[]string{"Delay-Every: 1m", "Delay-Cancel: 1"}, message.TimeTwice, "cancels it"},
		{[]string{"Delay-Cron: 0 0 30 2 *"}, message.BadTimer, "Delay-Cron: "},
		{[]string{"Delay-Cron: @daily", "Delay-Time-Zone: Mars"}, message.BadTimer, "Delay-Time-Zone: "},
		{[]string{"Delay-Jitter: 1m", "Delay-For: 1h"}, message.BadTimer, "Delay-Jitter without Delay-Every or Delay-Cron"},
		{[]string{"Delay-Every: 1m", "Delay-Missed-Rounds: few"}, message.BadTimer, "Delay-Missed-Rounds: "},
		{[]string{"Delay-Every: 1m", "Delay-Last: 2020-01-01T00:00:00Z"}, message.BadTimer, "no round before"},
		{[]string{"Delay-Every: 1m", "Delay-Last: soon"}, message.BadTime, "cannot be read"},
		{[]string{"Delay-Every: 1m", "Delay-Expires: 2030-01-01T00:00:00Z"}, message.BadOption,
			"after the due time of each round"},
		{[]string{"Delay-Every: 1m", "Delay-Pause-After: 0"}, message.BadTimer, `Delay-Pause-After "0": want`},
		{[]string{"Delay-Every: 1m", "Delay-Pause-After: 1001"}, message.BadTimer, "from 1 to 1000"},
		{[]string{"Delay-Every: 1m", "Delay-Pause-After: "}, message.BadTimer, "from 1 to 1000"},
		{[]string{"Delay-For: 1m", "Delay-Pause-After: 3"}, message.BadTimer, "without Delay-Every or Delay-Cron"},
		{[]string{"Delay-For: 1m", "Delay-Max-Wait: 2m", "Delay-Pause-After: 3"}, message.BadTimer, "without Delay-Every"},
		{[]string{"Delay-Every: 367d"}, message.TooFar, "DELAY_MAX_DELAY"},
		{[]string{"Delay-Every: 1m", "Delay-For: 1m", "Delay-Until: 2026-11-20T12:00:00Z"}, message.TimeTwice, "give one"},
	} {
		e := entry.Parse(policy, timerEntry(timerSubject, 7, header(tt.lines...)))
		wantProblem(t, strings.Join(tt.lines, " "), e.Problem, tt.code, tt.hint, "generation 7")
	}
	for _, line := range []string{"Delay-Every: 1m", "Delay-Cron: @daily", "Delay-Rounds: 1", "Delay-Owner: me",
		"Delay-Pause-After: 3"} {
		_, problem := policy.Parse(timerEntry("delay.1h.x", 7, header(line)))
		if problem == nil || problem.Code != message.BadOption {
			t.Errorf("%s on a subject without a key: got %v", line, problem)
		}
	}
	large := timerEntry(timerSubject, 7, header("Delay-Every: 2s"))
	large.Data = make([]byte, 128<<10+1)
	wantProblem(t, "a large body", entry.Parse(policy, large).Problem, message.TooLarge, "131073 bytes", "131072")
	large.Data = large.Data[1:]
	if e := entry.Parse(policy, large); e.Problem != nil {
		t.Errorf("a body of 64 KiB for each second: got %v, want no problem", e.Problem)
	}
}

// TestPauseAfterNeedsKey: the subject of a failed round must be in its Delay-Subject, which is truncated.
func TestPauseAfterNeedsKey(t *testing.T) {
	for length, ok := range map[int]bool{77: true, 78: false} { // 251 and 254 bytes: each % takes three
		subject := "delaytimer." + strings.Repeat("%", length) + ".orders.x"
		e := entry.Parse(policy, timerEntry(subject, 7, header("Delay-Every: 1m", "Delay-Pause-After: 3")))
		if got := e.Problem == nil; got != ok {
			t.Errorf("a subject of %d bytes: %v", len(subject), e.Problem)
		}
	}
}

// TestFailuresOfSeries: rounds that fail one after the other are counted. A round between them that did not fail begins
// another row. A cleared row forgets the number, and not which round was the last. The count goes from round to round.
func TestFailuresOfSeries(t *testing.T) {
	k := message.NewKeys([]string{strings.Repeat("s", 32)})
	p := policy
	p.Keys = k
	set := entry.Parse(p, timerEntry(timerSubject, 7, header("Delay-Every: 1m", "Delay-Pause-After: 3"))).Pending
	if n := set.Origin().PauseAfter; n != 3 {
		t.Fatalf("Delay-Pause-After is %d, want 3", n)
	}
	var got []int
	for _, round := range []int{1, 2, 4, 5, 6, 0, 7, 8} {
		if round == 0 {
			set.ClearFailures()
			continue
		}
		pause := set.AddFailure(round, "no")
		if got = append(got, set.Origin().Failures); pause != (round == 6) || pause != (set.LastError != "") {
			t.Errorf("round %d: pause is %t, the reason %q", round, pause, set.LastError)
		}
	}
	if want := []int{1, 2, 1, 2, 3, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("the numbers of failures are %v, want %v", got, want)
	}
	next := entry.Parse(p, roundEntry(t, k, timerSubject, set, 7, nextOf(set, "me"))).Origin()
	if next.Failures != 2 || next.FailedRound != 8 || next.PauseAfter != 3 || next.Round != 2 {
		t.Errorf("the next round has %+v", next)
	}
}

// roundEntry returns the stored entry that replaces a pending round.
func roundEntry(t *testing.T, k *message.Keys, subject string, r entry.Pending, generation uint64, n entry.Next,
) message.Incoming {
	t.Helper()
	h := r.RoundHeader(generation, n)
	k.SealMessage(subject, h, []byte("body"))
	in := timerEntry(subject, generation+2, wire(t, h))
	in.Data = []byte("body")
	return in
}

// nextOf returns the round after a pending one, on time.
func nextOf(r entry.Pending, by string) entry.Next {
	s, round := r.Round()
	return entry.Next{
		Instance: by, Round: r.Series.Table.Decide(s, round, r.Due).Next,
		Table: r.Series.Table, First: s.First, Token: r.Token,
	}
}

// checkRounds fires three rounds; each firing replaces the entry of its round. The client's headers and body are kept.
func checkRounds(t *testing.T, k *message.Keys, p message.Policy, subject string, r entry.Pending) {
	t.Helper()
	set, generation := r, uint64(7)
	for n := range 3 {
		next := nextOf(r, "me")
		if next.Round.Due.IsZero() {
			return
		}
		e := entry.Parse(p, roundEntry(t, k, subject, r, generation, next))
		generation += 2
		got := e.Pending
		if e.Kind != entry.Set || e.Problem != nil || !e.Fires(generation-2) || e.Fires(generation) {
			t.Fatalf("%q: the entry of round %d is parsed as %+v", subject, n+2, e)
		}
		if got.Origin().Series != 7 || got.Origin().Round != n+2 || !got.Due.Equal(next.Round.Due) || got.Due.Before(r.Due) ||
			!got.Series.Planned.Equal(next.Round.Planned) || got.Series.Table.Settings() != set.Series.Table.Settings() ||
			!got.Series.First.Equal(set.Series.First) {
			t.Fatalf("%q: round %+v is due %s, planned %+v", subject, got.Origin(), got.Due, got.Series)
		}
		if got.Target != set.Target || got.Token != set.Token || got.TTL != set.TTL || got.Mode != set.Mode ||
			got.Expires.Sub(got.Due) != set.Expires.Sub(set.Due) ||
			got.MsgID != set.MsgID || len(got.User) != len(set.User) || got.MaxAttempts != set.MaxAttempts {
			t.Fatalf("%q: round %d has not all fields of the set:\n got %+v\nwant %+v", subject, got.Origin().Round, got, set)
		}
		if b := e.ReplacedRequest; b.ID != r.ID || !b.Due.Equal(r.Due) || b.Origin().Round != r.Origin().Round ||
			b.Origin().Series != 7 || !b.Expires.Equal(r.Expires) {
			t.Fatalf("%q: the replaced round is %+v, want %+v", subject, b, r)
		}
		r = got
	}
}

// TestRounds: the firing of one round is the set of the next. It counts only with a broker's seal, and only if its
// publish expected the generation that it names.
func TestRounds(t *testing.T) {
	k := keysOf(secretOne)
	p := policyOf(k)
	set := entry.Parse(p, timerEntry(timerSubject, 7, header("Delay-Every: 1h", "Delay-Rounds: 9", "Delay-Jitter: 10m",
		"X-Mine: 1", "Delay-Expires: 5m", "Delay-TTL: 10m", "Delay-Owner: me", "Nats-Msg-Id: 1"))).Pending
	checkRounds(t, k, p, timerSubject, set)

	in := roundEntry(t, k, timerSubject, set, 7, nextOf(set, "me"))
	if r, problem := entry.ParseSet(p, in); problem != nil || r.Origin().Round != 2 || r.Summary() != "every 1h, round 2" {
		t.Errorf("as a set, the round is parsed as %+v, %v", r, problem)
	}
	for what, change := range map[string]func(in *message.Incoming){
		"no seal":            func(in *message.Incoming) { delete(in.Header, "Delay-Seal") },
		"another body":       func(in *message.Incoming) { in.Data = []byte("other") },
		"another key":        func(in *message.Incoming) { in.Subject = "delaytimer.other.orders.x" },
		"another generation": func(in *message.Incoming) { in.Header["Delay-Fired"] = []string{"6 me"} },
		"another round":      func(in *message.Incoming) { in.Header["Delay-Round"] = []string{"2"} },
		"another series":     func(in *message.Incoming) { in.Header["Delay-Series"] = []string{"3"} },
		"another table":      func(in *message.Incoming) { in.Header["Delay-Every"] = []string{"1s"} },
		"relayed":            func(in *message.Incoming) { in.Header["Nats-Stream"] = []string{"DELAY_TIMERS"} },
		"before it was set":  func(in *message.Incoming) { in.Sequence = 7 },
		"stored again":       func(in *message.Incoming) { delete(in.Header, message.HeaderExpected) },
		"in another place":   func(in *message.Incoming) { in.Header[message.HeaderExpected] = []string{"8"} },
	} {
		in := in
		in.Header = maps.Clone(in.Header)
		change(&in)
		if e := entry.Parse(p, in); e.Kind != entry.Set || e.Problem == nil || e.Fires(7) || e.Fires(6) {
			t.Errorf("%s: the round is valid, want an invalid set: %+v", what, e)
		}
	}
	if e := entry.Parse(policyOf(keysOf(secretTwo)), in); e.Kind != entry.Unproven || e.Fires(7) {
		t.Errorf("under an unknown key, the round is %+v, want unproven", e)
	}
}

// TestRoundsThatDoNotFire: a moved round keeps its number, and a paused round has no due time.
func TestRoundsThatDoNotFire(t *testing.T) {
	k := keysOf(secretOne)
	p := policyOf(k)
	set := entry.Parse(p, timerEntry(timerSubject, 7, header("Delay-Every: 1h", "Delay-Expires: 5m"))).Pending
	n := nextOf(set, "")
	n.Round.Due, n.Token = set.Due.Add(time.Minute), "mine"
	e := entry.Parse(p, roundEntry(t, k, timerSubject, set, 7, n))
	if r := e.Pending; e.Kind != entry.Set || e.Problem != nil || e.Fires(7) || e.Replaced != 7 || r.Origin().Round != 1 ||
		!r.Due.Equal(n.Round.Due) || r.Expires.Sub(r.Due) != 5*time.Minute || e.Token != "mine" {
		t.Errorf("the moved round is parsed as %+v", e)
	}
	n.Round.Due = time.Time{}
	if e := entry.Parse(p, roundEntry(t, k, timerSubject, set, 7, n)); e.Kind != entry.Paused || e.Fires(7) {
		t.Errorf("the paused round is parsed as %+v", e)
	}
}

// TestRoundAtItsTarget: a delivered round has its series and number in its headers, and so has its dead letter.
func TestRoundAtItsTarget(t *testing.T) {
	set := entry.Parse(policy, timerEntry(timerSubject, 7, header("Delay-Every: 1h"))).Pending
	for name, h := range map[string]message.Header{
		"the target":    set.TargetHeader(),
		"a dead letter": set.DeadHeader(message.Problemf(message.Expired, "x")),
	} {
		if !slices.Equal(h["Delay-Series"], []string{"7"}) || !slices.Equal(h["Delay-Round"], []string{"1"}) ||
			!slices.Equal(h["Delay-Id"], []string{set.ID}) || h["Delay-Every"] != nil || h["Delay-First"] != nil {
			t.Errorf("%s gets the headers %q", name, h)
		}
	}
}
