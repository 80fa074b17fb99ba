package timetable

import (
	"slices"
	"testing"
	"time"
)

// decade has zones whose rules change, and the years of the changes.
var decade = []struct {
	zone     string
	from, to int
}{
	{"Europe/Berlin", 2016, 2027},
	{"America/New_York", 2004, 2014}, // since 2007, the change in spring is three weeks earlier
	{"Australia/Lord_Howe", 2016, 2027},
	{"Africa/Casablanca", 2012, 2027}, // two more changes a year, for Ramadan
	{"Asia/Tehran", 2014, 2025},       // changes at midnight, later abolished
	{"America/Sao_Paulo", 2010, 2021}, // changes at midnight, later abolished
	{"Pacific/Apia", 2008, 2022},      // skips 30 December 2011
	{"Antarctica/Troll", 2016, 2027},  // changes by two hours
}

var crons = []string{
	"* * * * *", "*/15 * * * *", "45 * * * *", "0 0 * * *", "30 2 * * *", "*/10 2 * * *", "0,30 1-3 * * *",
	"15 */2 * * *", "0 12 30 12 *", "0 0 1 * 0", "59 23 * * 6", "0 3 29 2 *",
}

// TestTimesOfChangingClocks compares the search with a clock that is read each minute. A skipped time fires right after
// the gap, a time that occurs twice fires once, and a table of every hour fires whenever the clock shows its minute.
func TestTimesOfChangingClocks(t *testing.T) {
	t.Parallel()
	for _, d := range decade {
		zone, err := loadZone(d.zone)
		if err != nil {
			t.Fatal(err)
		}
		changes := changesIn(zone, d.from, d.to)
		if len(changes) < 8 {
			t.Fatalf("%s has %d changes of its clock, want at least 8", d.zone, len(changes))
		}
		for _, cron := range crons {
			table, err := Parse(Settings{Cron: cron, Zone: d.zone})
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range changes {
				from := change.Add(-26 * time.Hour).Truncate(time.Minute)
				want := watch(table.spec, from, from.Add(52*time.Hour))
				if got := walk(table, from, from.Add(52*time.Hour)); !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Errorf("%s in %s about %s:\n got %v\nwant %v", cron, d.zone, change.In(zone), got, want)
				}
				checkNextTimes(t, table, from, want)
			}
		}
	}
}

// checkNextTimes computes the next time from moments that are not in the table, including moments within a repeated
// hour.
func checkNextTimes(t *testing.T, table Table, from time.Time, want []time.Time) {
	t.Helper()
	for at := from; len(want) > 0; at = at.Add(23 * time.Minute) {
		for len(want) > 0 && !want[0].After(at) {
			want = want[1:]
		}
		if len(want) == 0 {
			return
		}
		if next, ok := table.Next(time.Time{}, at); !ok || !next.Equal(want[0]) {
			t.Errorf("%s, after %s: %s, want %s", table, at, next, want[0])
			return
		}
	}
}

func changesIn(zone *time.Location, from, to int) (changes []time.Time) {
	at := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC)
	for at.Year() < to {
		_, end := at.In(zone).ZoneBounds()
		if end.IsZero() {
			break
		}
		changes, at = append(changes, end), end.UTC()
	}
	return changes
}

// watch reads the local clock each minute.
func watch(s *spec, from, to time.Time) (times []time.Time) {
	minutes := func(t time.Time) int64 { return int64(wallOf(t.Unix(), s.zone)) / 60 }
	seen := minutes(from) // the latest time that the clock has shown
	for t := from.Add(-26 * time.Hour); !t.After(from); t = t.Add(time.Minute) {
		seen = max(seen, minutes(t))
	}
	for t := from.Add(time.Minute); !t.After(to); t = t.Add(time.Minute) {
		shows := minutes(t)
		first := seen + 1
		if s.hour == everyHour {
			first = shows
		}
		for m := first; m <= shows; m++ {
			day := time.Unix(m*60, 0).UTC()
			minute, hour := s.minute>>day.Minute()&1 == 1, s.hour>>day.Hour()&1 == 1
			if s.matches(day) && minute && hour {
				times = append(times, t)
				break
			}
		}
		seen = max(seen, shows)
	}
	return times
}

func walk(table Table, from, to time.Time) (times []time.Time) {
	for at := from; ; {
		next, ok := table.Next(time.Time{}, at)
		if !ok || next.After(to) {
			return times
		}
		times, at = append(times, next), next
	}
}

// TestNamedTimes checks the examples of the documentation.
func TestNamedTimes(t *testing.T) {
	for _, tt := range []struct{ cron, zone, after, want string }{
		{"30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T03:00:00+02:00"}, // skipped
		{"30 2 * * *", "Europe/Berlin", "2027-03-28T01:00:00Z", "2027-03-29T02:30:00+02:00"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00"}, // occurs twice
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T02:30:00+01:00"},
		{"30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T02:30:00+01:00"}, // each hour
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-04T02:30:00+11:00"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T01:00:00-02:00"},
		{"0 12 * * *", "Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-31T00:00:00+14:00"}, // a day is skipped
		{"0 12 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T12:00:00+14:00"},
		{"0 0 29 2 1", "", "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"}, // a Monday, or 29 February
		{"0 0 29 2 *", "", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 12 31 12 *", "Europe/Berlin", "2048-01-01T00:00:00Z", "2048-12-31T12:00:00+01:00"}, // of a leap year
		{"0 0 1 1 *", "Europe/Berlin", "2048-12-31T12:00:00Z", "2049-01-01T00:00:00+01:00"},
		{"*/20 * * * * *", "", "2026-01-01T00:00:20Z", "2026-01-01T00:00:40Z"},
	} {
		table, err := Parse(Settings{Cron: tt.cron, Zone: tt.zone})
		if err != nil {
			t.Fatal(err)
		}
		next, ok := table.Next(time.Time{}, at(tt.after))
		if got := next.In(table.spec.zone).Format(time.RFC3339); !ok || got != tt.want {
			t.Errorf("%s in %q after %s: %s, want %s", tt.cron, tt.zone, tt.after, got, tt.want)
		}
	}
}

// TestOccurrences: the occurrences show where the clocks change.
func TestOccurrences(t *testing.T) {
	table, err := Parse(Settings{Cron: "30 2 * * *", Zone: "Europe/Berlin"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"2026-10-24T02:30:00+02:00 0s", "2026-10-25T02:30:00+02:00 0s", "2026-10-26T02:30:00+01:00 -1h0m0s"}
	got := table.Occurrences(time.Time{}, at("2026-10-23T12:00:00Z"), 3)
	for i, c := range got {
		if s := c.At.Format(time.RFC3339) + " " + c.Shift.String(); s != want[i] {
			t.Errorf("%d: %s, want %s", i, s, want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d occurrences", len(got))
	}
}

// FuzzParse: no input causes a panic or an endless search, and each time is later than the one before.
func FuzzParse(f *testing.F) {
	for _, cron := range crons {
		f.Add("", cron, "Europe/Berlin", "", int64(1_800_000_000))
	}
	f.Add("", "0 0 1 1 *", "Europe/Berlin", "", int64(1800000000))
	f.Add("0", "0", "", "0m", int64(0))
	f.Add("15m", "", "", "5m", int64(0))
	f.Add("1s", "", "", "", int64(-1<<62))
	f.Add("", "TZ=0 * * * * *", "", "", int64(1))
	f.Add("", "0-59/0 * * * *", "", "", int64(1))
	f.Add("", "* * 31 feb mon#5", "UTC", "", int64(1))
	f.Add("", "CRON_TZ= @daily", "UTC", "", int64(1))
	f.Add("", "*/18446744073709551615 * * * *", "UTC", "", int64(1))
	f.Fuzz(func(t *testing.T, every, cron, zone, jitter string, unix int64) {
		table, err := Parse(Settings{Every: every, Cron: cron, Zone: zone, Jitter: jitter})
		if err != nil {
			return
		}
		if again, err := Parse(table.Settings()); err != nil || again.Settings() != table.Settings() {
			t.Fatalf("the words of %+v are %+v: %v", table, table.Settings(), err)
		}
		const year0, year9999 = -62167219200, 253402300799
		from := time.Unix(min(max(unix, year0), year9999), 0)
		last := from
		for range 20 {
			next, ok := table.Next(from, last)
			if !ok {
				return
			}
			if !next.After(last) {
				t.Fatalf("%+v: %s is not after %s", table, next, last)
			}
			last = next
		}
	})
}

// TestZoneHasOneName: another path to the file of a zone is not a name of the zone. The number of such paths is
// unlimited, and each cached zone takes memory.
func TestZoneHasOneName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe//Berlin", "Europe/./Berlin", "./Europe/Berlin", "Europe/.//./Berlin", "Local"} {
		if z, err := loadZone(name); err == nil {
			t.Errorf("%s is loaded as the zone %s, want an error", name, z)
		}
		if _, kept := zones.Load(name); kept {
			t.Errorf("%s is in the cache", name)
		}
	}
	if _, err := loadZone("Europe/Berlin"); err != nil {
		t.Error(err)
	}
}
