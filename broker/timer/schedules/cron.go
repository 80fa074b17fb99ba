package schedules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// field is one of the six fields of a cron expression: its bounds, and names for its values.
type field struct {
	min, max int
	names    string // three letters each, for min and the values after it
}

var fields = [...]field{
	{0, 59, ""}, {0, 59, ""}, {0, 23, ""}, {1, 31, ""},
	{1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 6, "sunmontuewedthufrisat"},
}

// aliases maps the server's names for cron expressions to the expressions.
var aliases = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *", "@weekly": "0 0 0 * * 0",
	"@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

// parseCron parses an expression by the server's grammar (server/cron.go): six fields, without L, W, #, H and the
// weekday 7. It returns an expression that has the same meaning in other grammars, such as that of package timetable.
func parseCron(pattern string) (expr string, err error) {
	if alias := aliases[pattern]; alias != "" {
		return alias, nil
	}
	words := strings.Fields(pattern)
	if len(words) != len(fields) {
		return "", fmt.Errorf("%d fields: want six, seconds first", len(words))
	}
	for i, word := range words {
		if words[i], err = fields[i].parse(word); err != nil {
			return "", err
		}
	}
	return strings.Join(words, " "), nil
}

// parse parses a list of ranges. It returns the matching values in a form that all grammars accept.
func (f field) parse(word string) (string, error) {
	var values [64]bool
	any, empty := false, true
	for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == ',' }) {
		low, high, step, star, err := f.span(part)
		if err != nil {
			return "", fmt.Errorf("%q: %w", part, err)
		}
		any, empty = any || star && step == 1, false
		for v := low; v <= high; v += step {
			values[v] = true
		}
	}
	switch {
	case empty:
		return "", fmt.Errorf("%q: an empty list", word)
	case any:
		return "*", nil
	}
	return compact(values), nil
}

// span parses a value, a range or a star, with or without a step. A value with a step extends to the field's maximum.
func (f field) span(part string) (low, high, step int, star bool, err error) {
	span, every, stepped := strings.Cut(part, "/")
	from, to, ranged := strings.Cut(span, "-")
	low, high, step, star = f.min, f.max, 1, from == "*" || from == "?"
	if !star {
		if low, err = f.value(from); err != nil {
			return 0, 0, 0, false, err
		}
		if ranged {
			if high, err = f.value(to); err != nil {
				return 0, 0, 0, false, err
			}
		} else if !stepped {
			high = low
		}
	}
	if stepped {
		step, err = strconv.Atoi(every)
	}
	switch {
	case err != nil:
		return 0, 0, 0, false, err
	case step < 1:
		return 0, 0, 0, false, errors.New("want a step of at least 1")
	case low > high:
		return 0, 0, 0, false, errors.New("the range ends before it begins")
	}
	return low, high, min(step, len([64]bool{})), star, nil
}

// compact formats a set of values. It writes a range for three or more values with equal distances.
func compact(values [64]bool) string {
	var all []int
	for v, ok := range values {
		if ok {
			all = append(all, v)
		}
	}
	var words []string
	for len(all) > 0 {
		n := 1
		for n+1 < len(all) && all[n+1]-all[n] == all[1]-all[0] {
			n++
		}
		switch {
		case n < 2: // no three in a row
			words = append(words, strconv.Itoa(all[0]))
			all = all[1:]
			continue
		case all[1]-all[0] == 1:
			words = append(words, fmt.Sprintf("%d-%d", all[0], all[n]))
		default:
			words = append(words, fmt.Sprintf("%d-%d/%d", all[0], all[n], all[1]-all[0]))
		}
		all = all[n+1:]
	}
	return strings.Join(words, ",")
}

func (f field) value(word string) (int, error) {
	if i := strings.Index(f.names, strings.ToLower(word)); len(word) == 3 && i >= 0 && i%3 == 0 {
		return f.min + i/3, nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%q: want %d to %d", word, f.min, f.max)
	}
	return n, nil
}
