package timetable

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the same zones on every machine
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// TestParseErrors: the error names the field and what to write instead.
func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		words      Settings
		word, says string
	}{
		{Settings{}, "every", "such as every 15m"},
		{Settings{Every: "15m", Cron: "@daily"}, "every", "one of them"},
		{Settings{Every: "999ms"}, "every", "at least 1s"},
		{Settings{Every: "15 minutes"}, "every", "unit"},
		{Settings{Every: "-1h"}, "every", "start with a digit"},
		{Settings{Every: "1h", Zone: "Europe/Berlin"}, "zone", "only for cron"},
		{Settings{Cron: "* * * *"}, "cron", "five fields"},
		{Settings{Cron: "* * * * * * *"}, "cron", "five fields"},
		{Settings{Cron: "61 * * * *"}, "cron", "five fields"},
		{Settings{Cron: "@every 5m"}, "cron", "give the interval separately"},
		{Settings{Cron: "@reboot"}, "cron", "@daily"},
		{Settings{Cron: "TZ=UTC 0 3 * * *"}, "cron", "give the zone separately"},
		{Settings{Cron: "0 0 30 2 *"}, "cron", "never matches"},
		{Settings{Cron: "0 0 15W * *"}, "cron", "\"15w\" is of another cron dialect"},
		{Settings{Cron: "0 0 LW * *"}, "cron", "another cron dialect"},
		{Settings{Cron: "0 0 L-3 * *"}, "cron", "another cron dialect"},
		{Settings{Cron: "0 0 * * 5L"}, "cron", "fri#2 for the second Friday"},
		{Settings{Cron: "0 0 * * fri#6"}, "cron", "another cron dialect"},
		{Settings{Cron: "0 0 1#2 * *"}, "cron", "another cron dialect"},
		{Settings{Cron: "0 L * * *"}, "cron", "L for the last day of the month"},
		{Settings{Cron: "H H * * *"}, "cron", "another cron dialect"},
		{Settings{Cron: "H/15 * * * *"}, "cron", "another cron dialect"},
		{Settings{Cron: "0 0 * * 8#2"}, "cron", "want 0 to 7"},
		{Settings{Cron: "0 0 31 4,6,9,11 *"}, "cron", "never matches"},
		{Settings{Cron: strings.Repeat("1,", 200) + "1 * * * *"}, "cron", "too long"},
		{Settings{Cron: "@daily", Zone: "Mars/Olympus"}, "zone", "there is no zone"},
		{Settings{Cron: "@daily", Zone: "Local"}, "zone", "there is no zone"},
		{Settings{Cron: "@daily", Zone: "../../etc/passwd"}, "zone", "there is no zone"},
		{Settings{Every: "1m", Jitter: "1m"}, "jitter", "less than 1m"},
		{Settings{Cron: "*/10 * * * * *", Jitter: "10s"}, "jitter", "less than 10s"},
		{Settings{Every: "1m", Jitter: "x"}, "jitter", "number"},
		{Settings{Every: "1m", Missed: "some"}, "missed", "skip, one or all"},
		{Settings{Every: "1m", Rounds: "0"}, "rounds", "at least 1"},
		{Settings{Every: "1m", Rounds: "ten"}, "rounds", "at least 1"},
	} {
		_, err := Parse(tt.words)
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Setting != tt.word || !strings.Contains(refused.Sentence, tt.says) {
			t.Errorf("%+v: %v; want %s, with %q", tt.words, err, tt.word, tt.says)
		}
	}
}

// TestSettingsAreTheTable: Parse reads Table.Settings as the same table.
func TestSettingsAreTheTable(t *testing.T) {
	for _, w := range []Settings{
		{Every: "1h30m", Jitter: "5m", Missed: "all", Rounds: "7", Last: at("2030-01-01T00:00:00Z")},
		{Every: "1s500ms", Missed: "one"},
		{Cron: "0 3 * * *", Zone: "Europe/Berlin", Missed: "skip"},
		{Cron: "*/5 30 3 1 JAN,jul THU", Missed: "one"},
		{Cron: "@daily", Missed: "one"},
	} {
		table, err := Parse(w)
		if err != nil || table.Settings() != w {
			t.Errorf("the words of %+v are %+v, %v", w, table.Settings(), err)
		}
	}
}

// TestRanges: a range that is shorter than its step is its first value, as in every other cron. A range that ends
// before it begins continues with the smallest value. A value out of bounds is refused, and so is a star with a step
// above its range, which is a mistake.
func TestRanges(t *testing.T) {
	for cron, same := range map[string]string{
		"2-4/3 * * * *":            "2 * * * *",
		"2-4/2 * * * *":            "2,4 * * * *",
		"7,2-4/3,10-40/20 * * * *": "2,7,10,30 * * * *",
		"50/20 * * * *":            "50 * * * *",
		"0 5-5/1 * * *":            "0 5 * * *",
		"0 0 28/9 JAN-mar/4 *":     "0 0 28 1 *",
		"0 0 * * Tue-fri/9":        "0 0 * * 2",
		"0 0 * * 7/2":              "0 0 * * 0",
		"30-31/9 0 0 1-2/9 * *":    "30 0 0 1 * *",
		"58-1 * * * *":             "0,1,58,59 * * * *",
		"0 0 * * FRI-mon":          "0 0 * * 0,1,5,6",
		"60-12 * * * *":            "",
		"* 24/2 * * *":             "",
		", * * * *":                "",
		"*/90 * * * *":             "",
		"60-70/20 * * * *":         "",
		"50-70/30 * * * *":         "",
		"2-4/0 * * * *":            "",
		"2-4/-3 * * * *":           "",
		"2-4/3/3 * * * *":          "",
		"2-x/3 * * * *":            "",
	} {
		got, err := Parse(Settings{Cron: cron})
		if same == "" {
			if err == nil {
				t.Errorf("%s is valid, want an error", cron)
			}
			continue
		}
		want, bad := Parse(Settings{Cron: same})
		if err != nil || bad != nil || *got.spec != *want.spec || got.Cron != cron {
			t.Errorf("%s: %v, %q; want that of %s, %v", cron, err, got.Cron, same, bad)
		}
	}
}

// TestDaysOfTheMonth: L is the last day of each month, and fri#2 the second Friday. Every day of 48 years is compared
// with the calendar: the period contains 2100, which is not a leap year.
func TestDaysOfTheMonth(t *testing.T) {
	last := func(d time.Time) bool { return d.AddDate(0, 0, 1).Day() == 1 }
	nth := func(d time.Time, weekday time.Weekday, n int) bool {
		return d.Weekday() == weekday && d.AddDate(0, 0, -7*n).Month() != d.Month() &&
			(n == 1 || d.AddDate(0, 0, -7*(n-1)).Month() == d.Month())
	}
	for cron, matches := range map[string]func(time.Time) bool{
		"0 9 L * *":        last,
		"0 9 l,15 * *":     func(d time.Time) bool { return last(d) || d.Day() == 15 },
		"0 9 L 2 *":        func(d time.Time) bool { return last(d) && d.Month() == time.February },
		"0 9 * * 5#2":      func(d time.Time) bool { return nth(d, time.Friday, 2) },
		"0 9 * * FRI#2":    func(d time.Time) bool { return nth(d, time.Friday, 2) },
		"0 9 * * sun#1":    func(d time.Time) bool { return nth(d, time.Sunday, 1) },
		"0 9 * * 7#5":      func(d time.Time) bool { return nth(d, time.Sunday, 5) },
		"0 9 * 2 mon#5":    func(d time.Time) bool { return nth(d, time.Monday, 5) && d.Month() == time.February },
		"0 9 * * tue#1,3":  func(d time.Time) bool { return nth(d, time.Tuesday, 1) || d.Weekday() == time.Wednesday },
		"0 9 L * mon#1":    func(d time.Time) bool { return last(d) || nth(d, time.Monday, 1) },
		"0 9 1-7 * fri#1":  func(d time.Time) bool { return d.Day() <= 7 || nth(d, time.Friday, 1) },
		"0 9 * * 1#2,4#4":  func(d time.Time) bool { return nth(d, time.Monday, 2) || nth(d, time.Thursday, 4) },
		"0 9 L 1-3/2 sat#": nil,
	} {
		table, err := Parse(Settings{Cron: cron})
		if matches == nil {
			if err == nil {
				t.Errorf("%s is valid, want an error", cron)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", cron, err)
			continue
		}
		after := at("2076-12-31T10:00:00Z")
		for day := at("2077-01-01T09:00:00Z"); day.Year() < 2125; day = day.AddDate(0, 0, 1) {
			if !matches(day) {
				continue
			}
			next, ok := table.Next(day, after)
			if !ok || !next.Equal(day) {
				t.Fatalf("%s: the round after %s is %s, %t; want %s", cron, after, next, ok, day)
			}
			after = day
		}
	}
}

// TestInterval: no two rounds come closer than Interval, which bounds the size of bodies and the jitter.
func TestInterval(t *testing.T) {
	for cron, want := range map[string]time.Duration{
		"* * * * * *":   time.Second,
		"*/7 * * * * *": 4 * time.Second, // 56, 0
		"0 * * * * *":   time.Minute,
		"*/15 * * * *":  15 * time.Minute,
		"0,59 * * * *":  time.Minute,
		"30 */6 * * *":  6 * time.Hour,
		"0 0,23 * * *":  time.Hour,
		"@daily":        24 * time.Hour,
		"@yearly":       24 * time.Hour,
		"0 3 L * fri#2": 24 * time.Hour,
	} {
		table, err := Parse(Settings{Cron: cron})
		if err != nil || table.Interval() != want {
			t.Errorf("%s: %s, %v; want %s", cron, table.Interval(), err, want)
		}
	}
}

// TestEveryKeepsInStep: the time of each round is computed from the first round, over centuries, and also for times
// before the first round.
func TestEveryKeepsInStep(t *testing.T) {
	table, err := Parse(Settings{Every: "7s"})
	if err != nil {
		t.Fatal(err)
	}
	first := at("2026-11-20T10:00:00Z")
	for after, want := range map[string]string{
		"2026-11-20T09:00:00Z": "2026-11-20T10:00:00Z",
		"2026-11-20T10:00:00Z": "2026-11-20T10:00:07Z",
		"2026-11-20T10:00:06Z": "2026-11-20T10:00:07Z",
		"2026-11-20T10:00:07Z": "2026-11-20T10:00:14Z",
	} {
		if next, ok := table.Next(first, at(after)); !ok || !next.Equal(at(want)) {
			t.Errorf("the round after %s is planned for %s, want %s", after, next, want)
		}
	}
	old := at("0001-01-01T00:00:00Z")
	next, ok := table.Next(old, first)
	if since := next.Unix() - old.Unix(); !ok || since%7 != 0 || !next.After(first) || next.Sub(first) > 7*time.Second {
		t.Errorf("the round at %s is not a multiple of 7 s after the first", next)
	}
	if next, ok := table.Next(first, at("9999-12-31T23:59:59Z")); ok {
		t.Errorf("a round is planned for %s, after the last year of a header", next)
	}
}

// TestStart: the first round is at the requested time, or at the next time of the table. A requested time that has
// passed gives an interval its phase.
func TestStart(t *testing.T) {
	set := at("2026-11-20T10:00:20Z")
	for _, tt := range []struct {
		words Settings
		asked string
		want  string // empty for none
	}{
		{Settings{Every: "1m"}, "", "2026-11-20T10:01:20Z"},
		{Settings{Every: "1m"}, "2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z"},
		{Settings{Every: "24h"}, "2020-01-01T03:00:00Z", "2026-11-21T03:00:00Z"},
		{Settings{Cron: "*/15 * * * *"}, "", "2026-11-20T10:15:00Z"},
		{Settings{Cron: "*/15 * * * *"}, "2026-11-20T10:03:00Z", "2026-11-20T10:03:00Z"},
		{Settings{Cron: "*/15 * * * *"}, "2020-01-01T03:00:00Z", "2026-11-20T10:15:00Z"},
		{Settings{Every: "1m", Last: at("2026-11-20T10:01:00Z")}, "", ""},
		{Settings{Cron: "@yearly", Last: at("2026-12-01T00:00:00Z")}, "", ""},
	} {
		table, err := Parse(tt.words)
		if err != nil {
			t.Fatal(err)
		}
		var asked time.Time
		if tt.asked != "" {
			asked = at(tt.asked)
		}
		first, ok := table.Start(set, asked)
		if ok != (tt.want != "") || ok && !first.Equal(at(tt.want)) {
			t.Errorf("%+v, requested for %q: got %s, %t, want %q", tt.words, tt.asked, first, ok, tt.want)
		}
	}
}
