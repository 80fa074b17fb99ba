package schedules

import (
	"maps"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// stored returns the state after a client has set a schedule at a time.
func stored(t *testing.T, at time.Time, body string, headers ...string) timer.State {
	t.Helper()
	p := policy(t)
	h := make(message.Header)
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = []string{headers[i+1]}
	}
	e := entry.Parse(p, message.Incoming{
		Stream: "DELAY_TIMERS", Sequence: 7, At: at, Subject: "delaytimer.a.x.y", Header: h, Data: []byte(body),
	})
	return timer.State{Sequence: 7, Entry: e, Message: message.Incoming{Data: []byte(body)}}
}

func one(t *testing.T, text string) (File, Schedule) {
	t.Helper()
	f, err := read(t, "set: reports\nschedules: {a: {target: x.y, "+text+"}}")
	if err != nil {
		t.Fatal(err)
	}
	return f, f.Schedules[0]
}

// TestPlan checks the step for a schedule of the file, by its entry.
func TestPlan(t *testing.T) {
	day := 24 * time.Hour
	ownHeaders := []string{"Delay-Every", "15m", "Delay-Owner", "reports"}
	of := func(more ...string) []string { return append(append([]string{}, ownHeaders...), more...) }
	for name, tt := range map[string]struct {
		file        string
		current     timer.State
		adopt       bool
		want        Action
		differences string // the names of the differences, or a part of Why
		header      string // of the change: some headers, as in "Delay-Until=…"
	}{
		"no entry":  {file: "every: 15m", want: Add, header: "Delay-Every=15m Delay-Owner=reports"},
		"cancelled": {file: "every: 15m", current: stored(t, now, "", "Delay-Cancel", "1"), want: Add},
		"unchanged": {
			file: "every: 900s, body: b", current: stored(t, now.Add(-day), "b", ownHeaders...), want: Same,
		},
		"of another set": {
			file: "every: 15m", want: Leave, differences: "in the set bills",
			current: stored(t, now, "", "Delay-Every", "15m", "Delay-Owner", "bills"),
		},
		"without a set": {
			file: "every: 15m", current: stored(t, now, "", "Delay-Every", "15m"), want: Leave, differences: "without a set",
		},
		"adopted": {
			file: "every: 15m", current: stored(t, now.Add(-7*time.Minute), "", "Delay-Every", "15m"), adopt: true,
			want: Change, differences: "set", header: "Delay-Until=2026-11-22T12:08:00Z",
		},
		"fires once": {
			file: "every: 15m", current: stored(t, now, "", "Delay-For", "1h"), want: Leave, differences: "not recur",
		},
		"another body keeps the phase": {
			file: "every: 15m, body: c", current: stored(t, now.Add(-day-7*time.Minute), "b", ownHeaders...), want: Change,
			differences: "body", header: "Delay-Until=2026-11-21T12:08:00Z Delay-Every=15m",
		},
		"another interval": {
			file: "every: 10m", current: stored(t, now.Add(-day), "", ownHeaders...), want: Change, differences: "table",
			header: "Delay-Until= Delay-Every=10m",
		},
		"all differences": {
			file: "cron: '0 3 * * *', tz: Asia/Tokyo, missed: all, jitter: 1h, pause-after: 3, " +
				"last: 2030-01-01T00:00:00Z, body: c, " +
				"headers: {X-A: [1, 2], Delay-Expires: 10m, Delay-Deliver: core, Delay-TTL: 1h, Delay-Max-Attempts: 2, " +
				"Delay-Rate-Key: a}",
			current: stored(t, now, "b", of("X-B", "1", "Delay-Rounds", "9")...), want: Change,
			differences: "table,rounds,last,missed,jitter,pause-after,header Delay-Deliver,header Delay-Expires," +
				"header Delay-TTL,header Delay-Max-Attempts,header Delay-Rate-Key,header X-A,header X-B,body",
		},
		"first is the phase of an interval": {
			file: "every: 15m, first: 2026-01-01T00:05:00Z", want: Same,
			current: stored(t, now.Add(-day), "", of("Delay-Until", "2026-11-01T00:20:00Z")...),
		},
		"another phase": {
			file: "every: 15m, first: 2026-01-01T00:05:00Z", want: Change, differences: "first",
			current: stored(t, now.Add(-day), "", ownHeaders...), header: "Delay-Until=2026-01-01T00:05:00Z",
		},
		"first is past, of a cron": {
			file: "cron: '@daily', first: 2026-01-01T00:05:00Z", want: Same,
			current: stored(t, now.Add(-day), "", "Delay-Cron", "@daily", "Delay-Owner", "reports"),
		},
		"first is in the future": {
			file: "cron: '@daily', first: 2026-12-01T00:05:00Z", want: Change, differences: "first",
			current: stored(t, now.Add(-day), "", "Delay-Cron", "@daily", "Delay-Owner", "reports"),
		},
		"round waits for its jitter": {
			file: "cron: '0 12 * * *', jitter: 1h, body: c", want: Change, differences: "body", header: "Delay-Until=due",
			current: stored(t, now.Add(-day), "", "Delay-Cron", "0 12 * * *", "Delay-Jitter", "1h", "Delay-Owner", "reports"),
		},
		"last round is past": {file: "every: 15m, last: 2026-11-22T12:14:00Z", want: Ended},
		"end moved to the past": {
			file: "every: 15m, last: 2026-11-22T11:00:00Z", current: stored(t, now, "", ownHeaders...), want: Remove,
		},
		"adopted, with its end in the past": {
			file: "every: 15m, last: 2026-11-22T11:00:00Z", want: Remove, adopt: true,
			current: stored(t, now, "", "Delay-Every", "15m", "Delay-Owner", "bills"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := one(t, tt.file)
			step := f.plan(s, tt.current, policy(t), now, tt.adopt)
			if step.Action != tt.want {
				t.Fatalf("got %+v, want %s", step, tt.want)
			}
			var differences []string
			for _, d := range step.Differences {
				differences = append(differences, d.Field)
			}
			got := strings.Join(differences, ",")
			if got != tt.differences && !(step.Why != "" && strings.Contains(step.Why, tt.differences)) {
				t.Errorf("got differences %q (%s), want %q", got, step.Why, tt.differences)
			}
			if tt.want == Add || tt.want == Change {
				checkChange(t, step, tt.current, s, tt.header)
			}
		})
	}
}

// checkChange checks the change to be stored: it expects the entry that was read, and leaves no difference.
func checkChange(t *testing.T, step Decision, current timer.State, s Schedule, header string) {
	t.Helper()
	w := step.change
	if !w.Conditional || w.Generation != current.Sequence || w.Key != "a" || w.Target != "x.y" {
		t.Errorf("got change %+v", w)
	}
	for pair := range strings.FieldsSeq(header) {
		name, want, _ := strings.Cut(pair, "=")
		if want == "due" {
			want = current.Entry.Request.Due.Format(time.RFC3339Nano)
		}
		if got := strings.Join(w.Header[name], ","); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	h := maps.Clone(w.Header)
	p := policy(t)
	after := timer.State{Sequence: 8, Message: message.Incoming{Data: w.Body}, Entry: entry.Parse(p, message.Incoming{
		Stream: "DELAY_TIMERS", Sequence: 8, At: now.Add(time.Second), Subject: "delaytimer.a.x.y", Header: h, Data: w.Body,
	})}
	again := File{Set: "reports"}.plan(s, after, p, now.Add(2*time.Second), false)
	if again.Action != Same {
		t.Errorf("after the change, the entry is %+v", again)
	}
}

// TestRemoval: only schedules of the set are removed, and only in the generation that was read.
func TestRemoval(t *testing.T) {
	f := File{Set: "reports"}
	for owner, want := range map[string]Action{"reports": Remove, "bills": Same} {
		step := f.removal(stored(t, now, "", "Delay-Every", "15m", "Delay-Owner", owner), "a", "x.y")
		if step.Action != want || want == Remove && step.change.Generation != 7 {
			t.Errorf("of %s: got %+v, want %s", owner, step, want)
		}
	}
	if step := f.removal(timer.State{}, "a", "x.y"); step.Action != Same {
		t.Errorf("of none: got %+v", step)
	}
}

// TestEveryOptionIsCompared: a schedule whose entry lacks one of the options in the file is changed.
func TestEveryOptionIsCompared(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	values := map[string]string{
		message.HeaderExpires: "10m", message.HeaderDeliver: "core", message.HeaderTTL: "1h",
		message.HeaderMaxAttempts: "2", message.HeaderRateKey: "shop-1",
	}
	for _, option := range options {
		f, s := one(t, "every: 15m, headers: {"+option+": "+values[option]+"}")
		current := stored(t, now, "", "Delay-Every", "15m", "Delay-Owner", "reports")
		if step := f.plan(s, current, policy(t), now, false); len(step.Differences) != 1 {
			t.Errorf("%s: %q: got the differences %v, want one", option, values[option], step.Differences)
		}
	}
}
