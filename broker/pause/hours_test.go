package pause

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the same zones on every machine
)

func mustHours(t *testing.T, daily, zone, days string) Hours {
	t.Helper()
	h, err := ParseHours(daily, zone, days)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHours: the hours begin and end at the minute, on the given days, and across midnight. A local time that a clock
// change skips is right after the gap, and one that occurs twice is the first occurrence.
func TestHours(t *testing.T) {
	const berlin = "Europe/Berlin"
	for _, tt := range []struct{ daily, zone, days, now, until string }{ // until begins with "quiet" inside the hours
		{"22:00-08:00", "", "", "2026-11-28T21:59:59.999Z", "2026-11-28T22:00:00Z"},
		{"22:00-08:00", "", "", "2026-11-28T22:00:00Z", "quiet 2026-11-29T08:00:00Z"},
		{"22:00-08:00", "", "", "2026-11-29T07:59:59.999Z", "quiet 2026-11-29T08:00:00Z"},
		{"22:00-08:00", "", "", "2026-11-29T08:00:00Z", "2026-11-29T22:00:00Z"},
		{"12:00-13:30", berlin, "", "2026-07-01T10:30:00Z", "quiet 2026-07-01T11:30:00Z"},
		{"12:00-13:30", berlin, "", "2026-12-01T10:30:00Z", "2026-12-01T11:00:00Z"},
		{"22:00-08:00", "", "mon-fri", "2026-11-28T03:00:00Z", "quiet 2026-11-28T08:00:00Z"}, // began on Friday
		{"22:00-08:00", "", "mon-fri", "2026-11-28T23:00:00Z", "2026-11-30T22:00:00Z"},       // Saturday
		{"00:00-24:00", "", "sat,sun", "2026-11-28T12:00:00Z", "quiet 2026-11-29T00:00:00Z"},
		{"00:00-24:00", "", "sat,sun", "2026-11-29T00:00:00Z", "quiet 2026-11-30T00:00:00Z"},
		{"00:00-24:00", "", "sat,sun", "2026-11-30T00:00:00Z", "2026-12-05T00:00:00Z"},
		{"09:00-09:01", "", "fri#2", "2026-11-28T00:00:00Z", "2026-12-11T09:00:00Z"},
		// On 29 March 2026, the clock of Berlin goes from 02:00 to 03:00 (01:00 UTC).
		{"02:30-08:00", berlin, "", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"},
		{"02:30-08:00", berlin, "", "2026-03-29T01:00:00Z", "quiet 2026-03-29T06:00:00Z"},
		{"22:00-02:30", berlin, "", "2026-03-29T00:59:59Z", "quiet 2026-03-29T01:00:00Z"},
		{"22:00-02:30", berlin, "", "2026-03-29T01:00:00Z", "2026-03-29T20:00:00Z"},
		// On 25 October 2026, it goes from 03:00 back to 02:00 (01:00 UTC).
		{"02:30-08:00", berlin, "", "2026-10-25T00:30:00Z", "quiet 2026-10-25T07:00:00Z"},
		{"22:00-02:30", berlin, "", "2026-10-25T00:29:59Z", "quiet 2026-10-25T00:30:00Z"},
		{"22:00-02:30", berlin, "", "2026-10-25T01:15:00Z", "2026-10-25T21:00:00Z"}, // 02:15, the second time
	} {
		now, err := time.Parse(time.RFC3339Nano, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		quiet, until := mustHours(t, tt.daily, tt.zone, tt.days).contains(now)
		got := until.UTC().Format(time.RFC3339Nano)
		if quiet {
			got = "quiet " + got
		}
		if got != tt.until {
			t.Errorf("%s %s %s at %s: %s, want %s", tt.daily, tt.zone, tt.days, tt.now, got, tt.until)
		}
	}
}

// TestHoursInEveryMinute: in a week with a clock change, the hours contain exactly the minutes whose local time is in
// them, and until is the next minute at which that changes.
func TestHoursInEveryMinute(t *testing.T) {
	h := mustHours(t, "21:15-06:45", "America/New_York", "")
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 10, 29, 0, 0, 0, 0, time.UTC)
	for now := start; now.Before(start.AddDate(0, 0, 7)); now = now.Add(time.Minute) {
		local := now.In(zone)
		minutes := 60*local.Hour() + local.Minute()
		quiet, until := h.contains(now)
		if want := minutes >= 21*60+15 || minutes < 6*60+45; quiet != want {
			t.Fatalf("%s: quiet %t, want %t", local, quiet, want)
		}
		before, _ := h.contains(until.Add(-1))
		if after, _ := h.contains(until); before != quiet || after == quiet || !until.After(now) {
			t.Fatalf("%s: until %s, but quiet is %t before it and %t from it on", local, until.In(zone), before, after)
		}
	}
}

func TestHoursErrors(t *testing.T) {
	for _, tt := range []struct{ daily, zone, days, says string }{
		{"", "", "", "as in 22:00-08:00"},
		{"22:00", "", "", "as in 22:00-08:00"},
		{"22-08", "", "", "as in 22:00-08:00"},
		{"22:00-8:0", "", "", "as in 22:00-08:00"},
		{"24:00-08:00", "", "", "as in 22:00-08:00"},
		{"22:00-24:01", "", "", "as in 22:00-08:00"},
		{"22:60-08:00", "", "", "as in 22:00-08:00"},
		{"-1:00-08:00", "", "", "as in 22:00-08:00"},
		{"22:00-22:00", "", "", "for whole days, write 00:00-24:00"},
		{"22:00-08:00", "Mars/Olympus", "", "there is no zone"},
		{"22:00-08:00", "", "someday", "someday"},
	} {
		if _, err := ParseHours(tt.daily, tt.zone, tt.days); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q %q %q: %v, want %q", tt.daily, tt.zone, tt.days, err, tt.says)
		}
	}
}

// TestHoursInTheRecord: the record keeps the hours, and refuses invalid ones.
func TestHoursInTheRecord(t *testing.T) {
	h := mustHours(t, "22:00-08:00", "Europe/Berlin", "mon-fri")
	data, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var again Hours
	now := time.Now()
	if string(data) != `"22:00-08:00 tz=Europe/Berlin days=mon-fri"` {
		t.Errorf("the record has %s", data)
	}
	if err := json.Unmarshal(data, &again); err != nil || again.String() != h.String() {
		t.Errorf("%s becomes %s, %v", data, again, err)
	}
	wantQuiet, wantUntil := h.contains(now)
	if quiet, until := again.contains(now); quiet != wantQuiet || !until.Equal(wantUntil) {
		t.Errorf("the hours of the record contain %s: %t until %s, want %t until %s", now, quiet, until, wantQuiet, wantUntil)
	}
	if err := json.Unmarshal([]byte(`"25:00-08:00"`), &again); err == nil {
		t.Error("the record may have invalid hours")
	}
}
