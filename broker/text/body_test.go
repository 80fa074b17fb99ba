package text

import (
	"strings"
	"testing"
)

func TestRenderBody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body  string
		limit int
		want  Body // without Hex
		cut   bool // want Truncated
	}{
		"empty":              {"", 0, Body{}, false},
		"carriage return":    {"real\rfake", 0, Body{Size: 9, Shown: 9, Dumped: 9}, false},
		"text":               {"a\tb\r\nü👩‍👧", 0, Body{Size: 18, Shown: 18, Dumped: 18, Text: "a\tb\r\nü👩‍👧"}, false},
		"bytes":              {"\xff\xfe", 0, Body{Size: 2, Shown: 2, Dumped: 2}, false},
		"a zero":             {"a\x00b", 0, Body{Size: 3, Shown: 3, Dumped: 3}, false},
		"an escape":          {"\x1b[2J", 0, Body{Size: 4, Shown: 4, Dumped: 4}, false},
		"eight-bit escape":   {"\u009b2J", 0, Body{Size: 4, Shown: 4, Dumped: 4}, false},
		"a reordering":       {"a\u202eb", 0, Body{Size: 5, Shown: 5, Dumped: 5}, false},
		"at the limit":       {"abcd", 4, Body{Size: 4, Shown: 4, Dumped: 4, Text: "abcd"}, false},
		"over the limit":     {"abcde", 4, Body{Size: 5, Shown: 4, Dumped: 4, Text: "abcd"}, true},
		"cut in a character": {"abc€", 5, Body{Size: 6, Shown: 3, Dumped: 5, Text: "abc"}, true},
		"cut after one":      {"abc€d", 6, Body{Size: 7, Shown: 6, Dumped: 6, Text: "abc€"}, true},
		"bytes that are cut": {"ab\xffcd", 4, Body{Size: 5, Shown: 4, Dumped: 4}, true},
		"a short dump": {
			strings.Repeat("x", 1000), 800, Body{Size: 1000, Shown: 800, Dumped: 256, Text: strings.Repeat("x", 800)}, true,
		},
		"the usual limit": {
			strings.Repeat("x", MaxBody+1), 0,
			Body{Size: MaxBody + 1, Shown: MaxBody, Dumped: MaxBody / 16, Text: strings.Repeat("x", MaxBody)}, true,
		},
	} {
		got := RenderBody([]byte(test.body), test.limit)
		if want := (test.want.Dumped + 15) / 16; strings.Count(got.Hex, "\n") != want {
			t.Errorf("%s: the dump has %d lines, want %d", name, strings.Count(got.Hex, "\n"), want)
		}
		got.Hex = ""
		if got != test.want || got.Truncated() != test.cut {
			t.Errorf("%s: got %+v, truncated %v; want %+v, truncated %v", name, got, got.Truncated(), test.want, test.cut)
		}
	}
	want := "00000000  3c 62 3e 0a                                       |<b>.|\n"
	if got := RenderBody([]byte("<b>\n"), 0).Hex; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
