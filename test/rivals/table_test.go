package rivals_test

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A table collects rows, and is printed at the end of the benchmark.
type table struct {
	head []string
	rows [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// print prints the table in Markdown, unless it is empty.
func (t *table) print(title string) {
	if len(t.rows) == 0 {
		return
	}
	fmt.Printf("\n%s\n\n", title)
	widths := make([]int, len(t.head))
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---:"
		for _, cells := range append([][]string{t.head, rule}, t.rows...) {
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
	}
	for _, cells := range append([][]string{t.head, rule}, t.rows...) {
		for i, cell := range cells {
			fmt.Printf("| %*s ", widths[i], cell)
		}
		fmt.Println("|")
	}
	fmt.Println()
}

// millis formats milliseconds with about three significant digits.
func millis(ms float64) string {
	switch {
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	case ms < 100:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return thousands(int(ms + 0.5))
}

// thousands formats a number with commas, as in 1,234,567.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percent formats a share of one in per cent.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) }
