package terminal

import (
	"strconv"

	"github.com/dustin/go-humanize"
)

// Figure formats a number with three digits, or as a whole number with more.
func Figure(n float64) string {
	switch {
	case n < 0:
		return "-" + Figure(-n)
	case n < 10:
		return strconv.FormatFloat(n, 'f', 2, 64)
	case n < 100:
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return Whole(int(n + 0.5))
}

// Whole formats a whole number with a comma after each three digits.
func Whole(n int) string { return humanize.Comma(int64(n)) }
