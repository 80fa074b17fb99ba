package terminal

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"delaybroker/broker/text"
)

func TestTableInAPipe(t *testing.T) {
	var out bytes.Buffer
	table := (&Printer{Out: &out}).Table()
	table.AppendHeader(Row("name", "count"))
	table.AppendRow(Row("a longer name", 1))
	table.AppendRow(Row("b", 20))
	if got, want := table.Render(), "NAME           COUNT\na longer name      1\nb                 20"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestPrintable(t *testing.T) {
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"plain", 10, "plain"},
		{"two\nlines\t\x1b[1m", 20, "two·lines··[1m"},
		{"ein süßes Ding", 8, "ein süß…"},
		{"", 3, ""},
		{"\xff\xfe", 3, "\ufffd\ufffd"},
	} {
		if got := text.Printable(test.text, test.most); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

// FuzzPrintable: a table of any text has one line for each row, is no wider than the terminal, and has no characters
// that control a terminal.
func FuzzPrintable(f *testing.F) {
	for i, s := range []string{
		"plain", "two\nlines\r\t", "\x1b[2J\x1b]0;title\x07", "\u009b2J", "\u202egnp.exe", "\u200b\ufeff\u2028",
		"\xff\xfe", "e\u0301", "\x7f\x08", "süß 世界 😀", "%!s(MISSING)", "<b>&amp;</b>", "| a | b |", "\u0085\u00a0",
	} {
		f.Add(s, uint16(i))
	}
	f.Fuzz(func(t *testing.T, s string, most uint16) {
		bound := int(most) + 1
		got := text.Printable(s, bound)
		if n := utf8.RuneCountInString(got); n > bound {
			t.Errorf("%q has %d characters, want at most %d", got, n, bound)
		}
		var out bytes.Buffer
		table := (&Printer{Out: &out}).Table()
		table.AppendRow(Row("a", s, 1))
		table.AppendRow(Row("b", "c", 2))
		for _, shown := range []string{got, strings.Replace(table.Render(), "\n", "", 1)} {
			acts := strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) })
			if acts || !utf8.ValidString(shown) {
				t.Errorf("%q is shown as %q", s, shown)
			}
		}
		if again := text.Printable(got, bound); again != got {
			t.Errorf("%q, and a second time %q", got, again)
		}
	})
}

// A sheet narrows columns, and leaves some out if that is not enough.
func TestSheetFits(t *testing.T) {
	s := (&Printer{Out: &bytes.Buffer{}}).Sheet([]Column{
		{Name: "id"},
		{Name: "spare", Drop: 1},
		{Name: "text", Min: 6},
		{Name: "first to go", Drop: 2},
	})
	s.Add("12345", "spare", "a text of 23 characters", "0123456789")
	for _, test := range []struct {
		width  int
		keep   []int
		widths []int
	}{
		{200, []int{0, 1, 2, 3}, []int{0, 0, 0, 0}},
		{57, []int{0, 1, 2, 3}, []int{0, 0, 0, 0}},
		{56, []int{0, 1, 2, 3}, []int{0, 0, 22, 0}},
		{30, []int{0, 1, 2}, []int{0, 0, 10, 0}},
		{25, []int{0, 2}, []int{0, 0, 13, 0}},
		{5, []int{0, 2}, []int{0, 0, 6, 0}},
	} {
		keep, widths := s.fit(test.width)
		if !slices.Equal(keep, test.keep) || !slices.Equal(widths, test.widths) {
			t.Errorf("%d: got %v and %v, want %v and %v", test.width, keep, widths, test.keep, test.widths)
		}
	}
}
