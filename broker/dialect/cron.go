package dialect

import (
	"fmt"
	"strconv"
	"strings"
)

// field is one of the six of a cron expression: its bounds, and names for its values.
type field struct {
	min, max int
	names    string // three letters each, for min and what follows
}

var fields = [...]field{
	{0, 59, ""}, {0, 59, ""}, {0, 23, ""}, {1, 31, ""},
	{1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 6, "sunmontuewedthufrisat"},
}

// aliases are the server's names of expressions.
var aliases = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *", "@weekly": "0 0 0 * * 0",
	"@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

// parseCron reads an expression by the server's grammar (server/cron.go), which is smaller than others: six fields, no
// L, W, # or H, and no weekday 7. The result means the same to those others.
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

// parse checks a list of ranges, and writes it with numbers.
func (f field) parse(word string) (string, error) {
	var all []string
	for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == ',' }) {
		span, step, stepped := strings.Cut(part, "/")
		low, high, ranged := strings.Cut(span, "-")
		out := "*"
		if low != "*" && low != "?" {
			from, err := f.value(low)
			if err != nil {
				return "", err
			}
			out = strconv.Itoa(from)
			if ranged {
				to, err := f.value(high)
				if err != nil {
					return "", err
				}
				if to < from {
					return "", fmt.Errorf("%q: it ends before it begins", part)
				}
				out += "-" + strconv.Itoa(to)
			}
		}
		if stepped {
			n, err := strconv.Atoi(step)
			if err != nil || n < 1 {
				return "", fmt.Errorf("%q: want a step from 1", part)
			}
			out += "/" + strconv.Itoa(n)
		}
		all = append(all, out)
	}
	if len(all) == 0 {
		return "", fmt.Errorf("%q: an empty list", word)
	}
	return strings.Join(all, ","), nil
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
