package timetable

import (
	"math/bits"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

const (
	// mostSpec is the longest expression, in bytes.
	mostSpec = 256
	// mostSearch is how many years a search goes on. The longest wait is that for 29 February on a given weekday, over a
	// year without one: 40 years.
	mostSearch = 41
	// mostYear is the last whose times can be written.
	mostYear = 9999
	// anyValue marks a field that begins with *.
	anyValue = 1 << 63

	everyHour = 1<<24 - 1
)

// parser reads five or six fields, and the names of package cron. It is safe for concurrent use.
var parser = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Descriptor | cron.DowOrDom)

// spec is a cron expression: of each field the values that match, as bits.
type spec struct {
	second, minute, hour, day, month, weekday uint64
	zone                                      *time.Location
}

// parseSpec reads an expression, and refuses one that never comes.
func parseSpec(text string, zone *time.Location) (*spec, *Error) {
	const want = "want five fields (minute hour day month weekday), six with seconds before them, or a name as @daily"
	text = strings.ToLower(strings.TrimSpace(text)) // the library takes an H for something else, as in THU
	switch {
	case len(text) > mostSpec:
		return nil, errorf("cron", "%s is too long: at most %d bytes", excerpt(text), mostSpec)
	case strings.HasPrefix(text, "@every"):
		return nil, errorf("cron", "%s is none: say every instead", excerpt(text))
	case strings.HasPrefix(text, "tz=") || strings.HasPrefix(text, "cron_tz="):
		return nil, errorf("cron", "%s: the zone stands by itself, not in the expression", excerpt(text))
	}
	parsed, err := parser.Parse(withoutSteps(text))
	if err != nil {
		return nil, errorf("cron", "%s: %v; %s", excerpt(text), err, want)
	}
	p, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errorf("cron", "%s; %s", excerpt(text), want)
	}
	s := &spec{
		second: p.Second &^ anyValue, minute: p.Minute &^ anyValue, hour: p.Hour &^ anyValue,
		day: p.Dom, month: p.Month, weekday: cron.NormalizeDOW(p.Dow), zone: zone,
	}
	if _, ok := s.search(wall(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix())); !ok {
		return nil, errorf("cron", "%s never comes: none of its months has such a day", excerpt(text))
	}
	return s, nil
}

// interval is no longer than the shortest time between two.
func (s *spec) interval() time.Duration {
	for _, field := range []struct {
		values uint64
		size   int
		unit   time.Duration
	}{{s.second, 60, time.Second}, {s.minute, 60, time.Minute}, {s.hour, 24, time.Hour}} {
		if n := closest(field.values, field.size); n < field.size {
			return time.Duration(n) * field.unit
		}
	}
	return 24 * time.Hour
}

// closest is the least distance between two values of a field, the last and the first included: the field's size where
// there is only one.
func closest(values uint64, size int) int {
	first := bits.TrailingZeros64(values)
	least, last := size, first
	for v := first + 1; v < size; v++ {
		if values>>v&1 == 1 {
			least, last = min(least, v-last), v
		}
	}
	return min(least, size-last+first)
}

// after is the first time of the table after t; zero where there is none before the year 10000.
func (s *spec) after(t time.Time) time.Time {
	unix := t.Unix()
	if s.hour == everyHour {
		return s.afterByMinutes(unix)
	}
	w, ok := s.search(highest(unix, s.zone) + 1)
	if !ok {
		return time.Time{}
	}
	return time.Unix(reached(w, s.zone), 0).UTC()
}

// afterByMinutes is after for a table of every hour: the next moment at which the clock shows a time of the table.
func (s *spec) afterByMinutes(unix int64) time.Time {
	for at := unix + 1; ; {
		shows := wallOf(at, s.zone)
		w, ok := s.search(shows)
		if !ok {
			return time.Time{}
		}
		end := change(at, s.zone)
		if next := at + int64(w-shows); next < end {
			return time.Unix(next, 0).UTC()
		}
		at = end // the clock is changed before that
	}
}

// search is the first time of the table that is not before another, by the calendar alone.
func (s *spec) search(from wall) (wall, bool) {
	t := time.Unix(int64(from), 0).UTC()
	last := min(t.Year()+mostSearch, mostYear)
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	if s.matches(day) {
		if second, ok := s.inDay(int(from - wall(day.Unix()))); ok {
			return wall(day.Unix()) + wall(second), true
		}
	}
	for day = day.AddDate(0, 0, 1); day.Year() <= last; {
		switch {
		case s.month>>day.Month()&1 == 0:
			day = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !s.matches(day):
			day = day.AddDate(0, 0, 1)
		default:
			second, _ := s.inDay(0)
			return wall(day.Unix()) + wall(second), true
		}
	}
	return 0, false
}

// matches reports whether a day is one of the table.
func (s *spec) matches(day time.Time) bool {
	date, weekday := s.day>>day.Day()&1 == 1, s.weekday>>day.Weekday()&1 == 1
	switch {
	case s.month>>day.Month()&1 == 0:
		return false
	case s.day&anyValue != 0 || s.weekday&anyValue != 0:
		return date && weekday
	}
	return date || weekday
}

// inDay is the first second of a day's times that is not before another.
func (s *spec) inDay(from int) (int, bool) {
	hour, minute, second := from/3600, from/60%60, from%60
	if s.hour>>hour&1 == 1 {
		if s.minute>>minute&1 == 1 {
			if n, ok := next(s.second, second); ok {
				return hour*3600 + minute*60 + n, true
			}
		}
		if n, ok := next(s.minute, minute+1); ok {
			return hour*3600 + n*60 + bits.TrailingZeros64(s.second), true
		}
	}
	n, ok := next(s.hour, hour+1)
	return n*3600 + bits.TrailingZeros64(s.minute)*60 + bits.TrailingZeros64(s.second), ok
}

// next is the first value of a field that is not below another.
func next(values uint64, from int) (int, bool) {
	left := values >> from << from
	return bits.TrailingZeros64(left), left != 0
}
