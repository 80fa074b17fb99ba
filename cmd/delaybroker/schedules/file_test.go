package schedules

import (
	"errors"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/message"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func policy(t *testing.T) message.Policy {
	t.Helper()
	names, err := message.NewNames(message.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	return message.Policy{Names: names}
}

func read(t *testing.T, text string) (File, error) {
	t.Helper()
	return Read("s.yaml", []byte(text), policy(t), now)
}

const example = `
set: reports
schedules:
  nightly:
    cron: 0 3 * * *
    tz: Europe/Berlin
    target: reports.run
    missed: one
    jitter: 5m
    last: 2030-01-01T00:00:00Z
    headers: {X-Kind: nightly, X-Many: [a, b], Delay-Expires: 1h}
    body: '{"kind":"nightly"}'
  pulse: {every: 15m, target: reports.pulse, first: 2026-01-01T00:05:00Z}
  picture:
    every: 1d
    target: reports.picture
    body: !!binary AAEC/w==
`

// TestReadFile checks the result of every valid part of a file.
func TestReadFile(t *testing.T) {
	f, err := read(t, example)
	if err != nil {
		t.Fatal(err)
	}
	if f.Set != "reports" || len(f.Schedules) != 3 {
		t.Fatalf("got %+v", f)
	}
	nightly, pulse, picture := f.Schedules[0], f.Schedules[1], f.Schedules[2]
	for header, want := range map[string]string{
		"Delay-Cron": "0 3 * * *", "Delay-Time-Zone": "Europe/Berlin", "Delay-Missed-Rounds": "one", "Delay-Jitter": "5m",
		"X-Kind": "nightly", "X-Many": "a,b", "Delay-Expires": "1h", "Delay-Every": "",
	} {
		if got := strings.Join(nightly.Header[header], ","); got != want {
			t.Errorf("%s: got %q, want %q", header, got, want)
		}
	}
	if want := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC); !nightly.Last.Equal(want) {
		t.Errorf("last: got %s, want %s", nightly.Last, want)
	}
	if nightly.Name != "nightly" || nightly.Target != "reports.run" || string(nightly.Body) != `{"kind":"nightly"}` ||
		nightly.Line != 4 {
		t.Errorf("got %+v", nightly)
	}
	if want := time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC); !pulse.First.Equal(want) || len(pulse.Header) != 1 {
		t.Errorf("got %+v", pulse)
	}
	if string(picture.Body) != "\x00\x01\x02\xff" {
		t.Errorf("got body %q", picture.Body)
	}
}

// TestReadFileProblems: all problems are reported together, each with its line and a remedy.
func TestReadFileProblems(t *testing.T) {
	for _, tt := range [][]string{ // a file, and its problems
		{"", "s.yaml:1", "the file is empty"},
		{"set: [", "s.yaml", "yaml"},
		{"set: a\nschedules: {}\n---\nx: 1", "a second one"},
		{"schedules: {}", "set is missing"},
		{"set: a.b\nschedules: {}", "s.yaml:1: set", "the name", "without dots"},
		{"set: reports", "schedules is missing", "{} for none"},
		{"set: reports\nschedules: [a]", "s.yaml:2", "keys and values"},
		{"set: reports\nschedule: {}", `s.yaml:2: the file: unknown key "schedule" (schedules?)`},
		{"just text", "the file: want keys and values"},
		{"set: reports\nschedules:\n  a: {evry: 5m, target: x.y}\n  b: {every: 5m}\n  b: {every: 5m, target: x}",
			`s.yaml:3: a: unknown key "evry" (every?)`, "s.yaml:4: b: target is missing",
			`s.yaml:5: schedules: duplicate key "b", first in line 4`,
		},
		{"set: reports\nschedules: {a: }", "a: want keys and values: every, cron"},
		{"set: reports\nschedules: {a: {target: x}}", "s.yaml:2: a: "},
		{"set: reports\nschedules: {a: {every: soon, target: x}}", "s.yaml:2: a: "},
		{"set: reports\nschedules: {a: {every: 5m, cron: '0 3 * * *', target: x}}", "s.yaml:2: a: "},
		{"set: reports\nschedules: {a: {cron: 0 0 30 2 *, target: x}}", "s.yaml:2: a: "},
		{"set: reports\nschedules: {a: {cron: 0 3 * * *, tz: Europe/Berlyn, target: x}}", "s.yaml:2: a: ", "Berlyn"},
		{"set: reports\nschedules: {a: {every: 5m, target: x.*}}", "s.yaml:2: a: ", "wildcard"},
		{"set: reports\nschedules: {_a: {every: 5m, target: x}}", "s.yaml:2: the name", "_"},
		{"set: reports\nschedules: {a: {every: 5m, target: x, first: 10m}}", "a: first", "would begin at each application"},
		{"set: reports\nschedules: {a: {every: 5m, target: x, rounds: 3}}", "a: rounds is not allowed in a file", "last"},
		{"set: reports\nschedules: {a: {every: 5m, target: x, body: {b: 1}}}", "want text", "quote other values"},
		{"set: reports\nschedules: {a: {every: 5m, target: x, headers: {Delay-Every: 5m}}}",
			"a: the header Delay-Every", "have a key"},
		{"set: reports\nschedules: {a: {every: 5m, target: x, headers: {delay-for: 5m}}}", "a: the header delay-for"},
		{"set: reports\nschedules: {a: {every: 5m, target: x, headers: {Nats-TTL: 5m}}}",
			"a: the header Nats-TTL is reserved for the server"},
		{"set: reports\nschedules: {a: &d {every: 5m, target: x}, b: {<<: *d}}", "b: merge keys are not supported"},
	} {
		text, want := tt[0], tt[1:]
		_, err := read(t, text)
		if !errors.Is(err, errFile) {
			t.Errorf("%q: got %v, want ErrFile", text, err)
			continue
		}
		if strings.Contains(err.Error(), "the entry before it is replaced") {
			t.Errorf("%q: got %q, which assumes an existing timer", text, err)
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: got %q, want %q in it", text, err, part)
			}
		}
	}
}

// FuzzRead: any input is parsed or refused.
func FuzzRead(f *testing.F) {
	f.Add(example)
	f.Add("a: &a [*a]")
	f.Add("set: x\nschedules: &x {a: *x}")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		if _, err := read(t, text); err != nil && !errors.Is(err, errFile) {
			t.Errorf("got %v", err)
		}
	})
}
