package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"delaybroker/broker/inspect"
)

// table is an empty table; its Render writes to stdout. It has rounded borders on a terminal, as the NATS CLI's have,
// and bare columns elsewhere.
func (a *app) table() table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(a.stdout)
	t.SetStyle(table.StyleRounded)
	if !isTerminal(a.stdout) {
		t.SetStyle(bareStyle)
		t.SuppressTrailingSpaces()
	}
	if !a.colored() {
		text.DisableColors()
	}
	return t
}

// maxCell is how many characters a table shows of text that somebody else wrote.
const maxCell = 1000

// row is a row of a table, in go-pretty's type. Names of streams, metadata and error texts come from others, so control
// characters are replaced.
func row(cells ...any) table.Row {
	for i, cell := range cells {
		if s, ok := cell.(string); ok {
			cells[i] = inspect.Printable(s, maxCell)
		}
	}
	return cells
}

// bareStyle is for pipes: what awk and people in a log want to see.
var bareStyle = table.Style{
	Name:   "bare",
	Box:    table.BoxStyle{PaddingRight: "  "},
	Format: table.FormatOptions{Header: text.FormatUpper},
}

// colored reports whether stdout may have colours: https://no-color.org.
func (a *app) colored() bool {
	return isTerminal(a.stdout) && os.Getenv("NO_COLOR") == ""
}

// printJSON writes v with line breaks on a terminal, and as one line elsewhere, so that many are a stream of lines.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	if isTerminal(a.stdout) {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
