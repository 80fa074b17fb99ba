package timetable

import (
	"strconv"
	"strings"
)

// field is one field of a cron expression: its largest value, and the names of its values from first on.
type field struct {
	largest int
	names   string // three letters each
	first   int
}

// fields begin with the last one: the seconds, which come first, may be left out. The library reads 7 as a Sunday.
var fields = [...]field{
	{7, "sunmontuewedthufrisat", 0}, {12, "janfebmaraprmayjunjulaugsepoctnovdec", 1}, {largest: 31}, {largest: 23},
	{largest: 59}, {largest: 59},
}

// withoutSteps leaves the first value of a range that is shorter than its step, as in 2-4/3: that is what the range
// means, and the library refuses it. It also refuses a star that is shorter, as */90 for the minutes: somebody means
// more than an hour there, and would get less. That stays.
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
		return part // the library judges it
	}
	return from
}

// value is the value of a word; negative for none.
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
