package timetable

import (
	"strconv"
	"strings"
)

// field describes one field of a cron expression: its largest value, and the names of its values, starting at first.
type field struct {
	largest int
	names   string // three letters each
	first   int
}

// fields are in reverse order: the first field of an expression, the seconds, may be absent. The library accepts the
// weekday 7 as Sunday.
var fields = [...]field{
	{7, "sunmontuewedthufrisat", 0}, {12, "janfebmaraprmayjunjulaugsepoctnovdec", 1}, {largest: 31}, {largest: 23},
	{largest: 59}, {largest: 59},
}

// withoutSteps replaces each range that is shorter than its step, as in 2-4/3, by its first value. Both have the same
// meaning, but the library refuses such a range. withoutSteps does not replace a star with too large a step, as in */90
// for the minutes. The library refuses such a star, rightly: its author expects an interval of more than an hour.
func withoutSteps(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		place := len(words) - 1 - i
		if place >= len(fields) {
			return text
		}
		parts := strings.Split(word, ",")
		for n, part := range parts {
			parts[n] = fields[place].withoutStep(part)
		}
		words[i] = strings.Join(parts, ",")
	}
	return strings.Join(words, " ")
}

func (f field) withoutStep(part string) string {
	span, every, stepped := strings.Cut(part, "/")
	from, to, ranged := strings.Cut(span, "-")
	low, high := f.value(from), f.largest
	if ranged {
		high = f.value(to)
	}
	step, err := strconv.Atoi(every)
	if !stepped || err != nil || low < 0 || high < low || high > f.largest || step <= high-low {
		return part // the library accepts or refuses it
	}
	return from
}

// value returns the value of a number or name, or a negative number if it is neither.
func (f field) value(word string) int {
	if i := strings.Index(f.names, word); len(word) == 3 && i >= 0 && i%3 == 0 {
		return f.first + i/3
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return -1
	}
	return n
}
