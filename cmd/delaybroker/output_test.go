package main

import (
	"bytes"
	"testing"
)

func TestTableInAPipe(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	table := a.table()
	table.AppendHeader(row("name", "count"))
	table.AppendRow(row("a longer name", 1))
	table.AppendRow(row("b", 20))
	table.Render()
	if got, want := out.String(), "NAME           COUNT\na longer name      1\nb                 20\n"; got != want {
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
		if got := printable(test.text, test.most); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestVersionJSON(t *testing.T) {
	all := decodeLines[map[string]string](t, mustRunVerb(t, "", "version", "--json"))
	if len(all) != 1 || all[0]["nats-server"] == "" || all[0]["delaybroker"] == "" {
		t.Errorf("got %v, want the versions", all)
	}
}
