package timetable

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"
)

const (
	// maxSpec is the maximum length of an expression, in bytes.
	maxSpec = 256
	// maxSearch is the maximum length of a search, in years. The longest wait is for a fifth weekday of February, which is
	// a leap day on a given weekday, across a century year that is not a leap year.
	maxSearch = 40
	// maxYear is the last year that a header can hold.
	maxYear = 9999
	// everyHour has the bits of all hours.
	everyHour = 1<<24 - 1
)

// spec is a cron expression. In each field, bit n is set if the value n matches.
type spec struct {
	second, minute, hour, day, month, weekday uint64
	zone                                      *time.Location
}

// parseSpec parses an expression. It refuses an expression that never matches.
func parseSpec(text string, zone *time.Location) (*spec, *Error) {
	const want = "want five fields (minute hour day month weekday), six with the seconds first, or a name such as @daily"
	text = strings.ToLower(strings.TrimSpace(text))
	switch {
	case len(text) > maxSpec:
		return nil, errorf("cron", "%.64q is too long: at most %d bytes", text, maxSpec)
	case strings.HasPrefix(text, "@every"):
		return nil, errorf("cron", "%.64q: give the interval separately, not as a cron expression", text)
	case strings.HasPrefix(text, "tz=") || strings.HasPrefix(text, "cron_tz="):
		return nil, errorf("cron", "%.64q: give the zone separately, not in the expression", text)
	}
	words := strings.Fields(cmp.Or(aliases[text], text))
	if len(words) == len(fields)-1 {
		words = slices.Insert(words, 0, "0") // the seconds
	}
	if len(words) != len(fields) {
		return nil, errorf("cron", "%.64q; %s", text, want)
	}
	var values [len(fields)]uint64
	for i, word := range words {
		var err error
		if values[i], err = fields[i].parse(word, false); err != nil {
			return nil, errorf("cron", "%.64q: %v; %s", text, err, want)
		}
	}
	const sunday7 = 1 << 7 // Sunday is 0 or 7
	s := &spec{
		second: values[0] &^ anyValue, minute: values[1] &^ anyValue, hour: values[2] &^ anyValue,
		day: values[3], month: values[4], weekday: (values[5] | values[5]&sunday7>>7) &^ sunday7, zone: zone,
	}
	if _, ok := s.search(wall(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix())); !ok {
		return nil, errorf("cron", "%.64q never matches: none of its months has such a day", text)
	}
	return s, nil
}

// interval returns a lower bound of the time between two local times of the table.
func (s *spec) interval() time.Duration {
	for _, field := range []struct {
		values uint64
		size   int
		unit   time.Duration
	}{{s.second, 60, time.Second}, {s.minute, 60, time.Minute}, {s.hour, 24, time.Hour}} {
		if n := minDistance(field.values, field.size); n < field.size {
			return time.Duration(n) * field.unit
		}
	}
	return 24 * time.Hour
}

// minDistance returns the smallest distance between two values of a field. The distance from the last value to the next
// occurrence of the first value counts, too. For a single value the result is the size of the field.
func minDistance(values uint64, size int) int {
	first := bits.TrailingZeros64(values)
	smallest, last := size, first
	for v := first + 1; v < size; v++ {
		if values>>v&1 == 1 {
			smallest, last = min(smallest, v-last), v
		}
	}
	return min(smallest, size-last+first)
}

// nextTime returns the first time of the table after t, or the zero time if there is none up to maxYear.
func (s *spec) nextTime(t time.Time) time.Time {
	unix := t.Unix()
	if s.hour == everyHour {
		return s.nextByMinutes(unix)
	}
	w, ok := s.search(latestWall(unix, s.zone) + 1)
	if !ok {
		return time.Time{}
	}
	return time.Unix(firstMoment(w, s.zone), 0).UTC()
}

// nextByMinutes implements nextTime for a table that does not restrict the hours. It returns the next moment at which
// the local clock shows a time of the table.
func (s *spec) nextByMinutes(unix int64) time.Time {
	for at := unix + 1; ; {
		local := wallOf(at, s.zone)
		w, ok := s.search(local)
		if !ok {
			return time.Time{}
		}
		end := nextChange(at, s.zone)
		if next := at + int64(w-local); next < end {
			return time.Unix(next, 0).UTC()
		}
		at = end // the local clock changes before the table's time
	}
}

// search returns the first local time of the table at or after from. search ignores clock changes.
func (s *spec) search(from wall) (wall, bool) {
	t := time.Unix(int64(from), 0).UTC()
	last := min(t.Year()+maxSearch, maxYear)
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	if s.matches(day) {
		if second, ok := s.searchDay(int(from - wall(day.Unix()))); ok {
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
			second, _ := s.searchDay(0)
			return wall(day.Unix()) + wall(second), true
		}
	}
	return 0, false
}

// matches reports whether the table has a time on a day.
func (s *spec) matches(day time.Time) bool {
	date := s.day>>day.Day()&1 == 1 || s.day&lastDay != 0 && day.AddDate(0, 0, 1).Day() == 1
	weekday := s.weekday&(1<<day.Weekday()|nthWeekday(int(day.Weekday()), (day.Day()+6)/7)) != 0
	switch {
	case s.month>>day.Month()&1 == 0:
		return false
	case s.day&anyValue != 0 || s.weekday&anyValue != 0:
		return date && weekday
	}
	return date || weekday
}

// searchDay returns the first time of the table within a day, at or after from. Both are in seconds since midnight.
func (s *spec) searchDay(from int) (int, bool) {
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

// next returns the smallest value of a field that is at least from.
func next(values uint64, from int) (int, bool) {
	rest := values >> from << from
	return bits.TrailingZeros64(rest), rest != 0
}
