package timetable

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// field is one of the six fields of a cron expression: its bounds, and names for its values.
type field struct {
	min, max int
	names    string // the names of the values from min, three letters each
}

var fields = [...]field{
	{0, 59, ""}, {0, 59, ""}, {0, 23, ""}, {1, 31, ""},
	{1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 7, "sunmontuewedthufrisat"},
}

// aliases maps the names of cron expressions to the expressions.
var aliases = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *", "@weekly": "0 0 0 * * 0",
	"@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

const (
	// anyValue is the bit that marks a field with a star without a step. The bits of all values are set, too.
	anyValue = 1 << 63
	// lastDay is the bit of L in the field of days: the last day of the month.
	lastDay = 1 << 32
	// firstNth is the lowest of the 35 bits for the first to the fifth of each weekday in the month: see nthWeekday.
	firstNth = 8
)

// nthWeekday returns the bit of a weekday (0 to 6) whose n-th occurrence in the month matches, in the field of
// weekdays.
func nthWeekday(weekday, n int) uint64 { return 1 << (firstNth + 7*(n-1) + weekday) }

// FromServer translates a cron expression of nats-server (server/cron.go) into an expression for [Parse]. The server
// requires six fields, and does not accept the weekday 7 or a range that ends before it begins. It accepts a star with
// a step that Parse refuses as too large.
func FromServer(pattern string) (expr string, err error) {
	if alias := aliases[pattern]; alias != "" {
		return alias, nil
	}
	texts := strings.Fields(pattern)
	if len(texts) != len(fields) {
		return "", fmt.Errorf("%d fields: want six, seconds first", len(texts))
	}
	for i, text := range texts {
		f := fields[i]
		if f.max == 7 {
			f.max = 6 // for the server, Sunday is 0 only
		}
		values, err := f.parse(strings.ToLower(text), true)
		if err != nil {
			return "", err
		}
		if texts[i] = "*"; values&anyValue == 0 {
			texts[i] = formatValues(values)
		}
	}
	return strings.Join(texts, " "), nil
}

// parse returns the values of a list of ranges, as bits. A range that ends before it begins, such as fri-mon, continues
// at the field's smallest value. Such a range, or a star, is refused if its step skips all its values but the first:
// the author of */90 for the minutes expects an interval of 90 minutes. Strict makes parse follow the rules of
// nats-server instead.
func (f field) parse(list string, strict bool) (values uint64, err error) {
	size := f.max - f.min + 1
	for part := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		if !strict {
			value, special, err := f.parseOfMonth(part)
			if err != nil {
				return 0, err
			}
			if values |= value; special {
				continue
			}
		}
		low, high, step, star, err := f.parseRange(part)
		wraps := low > high
		if wraps {
			high += size
		}
		switch {
		case err != nil:
		case strict && wraps:
			err = errors.New("the range ends before it begins")
		case !strict && (star || wraps) && step > high-low:
			err = errors.New("the step is too large for the range")
		}
		if err != nil {
			return 0, fmt.Errorf("%.64q: %w", part, err)
		}
		for v := low; v <= high; v += step {
			values |= 1 << (f.min + (v-f.min)%size)
		}
		if star && step == 1 {
			values |= anyValue
		}
	}
	if values == 0 {
		return 0, fmt.Errorf("%.64q: an empty list", list)
	}
	return values, nil
}

// parseRange parses a value, a range or a star, with or without a step. A value with a step begins a range to the
// field's maximum.
func (f field) parseRange(part string) (low, high, step int, star bool, err error) {
	values, every, stepped := strings.Cut(part, "/")
	from, to, ranged := strings.Cut(values, "-")
	low, high, step, star = f.min, f.max, 1, from == "*" || from == "?"
	if !star {
		if low, err = f.parseValue(from); err == nil && ranged {
			high, err = f.parseValue(to)
		} else if !stepped {
			high = low
		}
	}
	if stepped && err == nil {
		if step, err = strconv.Atoi(every); err == nil && step < 1 {
			err = errors.New("want a step of at least 1")
		}
	}
	return low, high, min(step, 64), star, err // a larger step has the same meaning, and might overflow
}

// parseOfMonth parses the two forms that depend on the length of the month: L for a day, and a weekday such as fri#2.
// It refuses all other forms of Quartz and of Jenkins, by their names.
func (f field) parseOfMonth(part string) (value uint64, ok bool, err error) {
	day, nth, counted := strings.Cut(part, "#")
	n, _ := strconv.Atoi(nth)
	switch weekdays := f.max == 7; {
	case part == "l" && f.max == 31:
		return lastDay, true, nil
	case counted && weekdays && len(nth) == 1 && n >= 1 && n <= 5:
		weekday, err := f.parseValue(day)
		return nthWeekday(weekday%7, n), true, err
	case counted, part[0] == 'l', part[0] == 'h', part[0] <= '9' && strings.ContainsAny(part, "lw"):
		return 0, false, fmt.Errorf("%.64q is of another cron dialect: of L, W, # and H, this one has L for the last day of "+
			"the month, and fri#2 for the second Friday, up to #5", part)
	}
	return 0, false, nil
}

func (f field) parseValue(text string) (int, error) {
	if i := strings.Index(f.names, text); len(text) == 3 && i >= 0 && i%3 == 0 {
		return f.min + i/3, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%.64q: want %d to %d", text, f.min, f.max)
	}
	return n, nil
}

// formatValues formats a set of values. It writes a range for three or more values with equal distances.
func formatValues(values uint64) string {
	var all []int
	for v := range 64 {
		if values>>v&1 == 1 {
			all = append(all, v)
		}
	}
	var ranges []string
	for len(all) > 0 {
		last := 1 // the index of the last value with the same distance
		for last+1 < len(all) && all[last+1]-all[last] == all[1]-all[0] {
			last++
		}
		switch {
		case last < 2: // fewer than three values with equal distances
			ranges = append(ranges, strconv.Itoa(all[0]))
			last = 0
		case all[1]-all[0] == 1:
			ranges = append(ranges, fmt.Sprintf("%d-%d", all[0], all[last]))
		default:
			ranges = append(ranges, fmt.Sprintf("%d-%d/%d", all[0], all[last], all[1]-all[0]))
		}
		all = all[last+1:]
	}
	return strings.Join(ranges, ",")
}
