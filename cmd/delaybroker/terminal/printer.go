package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	pretty "github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"delaybroker/broker/text"
)

// MaxCell is the maximum length of untrusted text in a table cell, in characters.
const MaxCell = 1000

// DefaultWidth and defaultHeight are the size, in characters, of a terminal that does not report its size.
const DefaultWidth, defaultHeight = 80, 24

// A Printer writes a command's output, as tables or JSON. After a write error of Out it writes nothing more to Out, and
// Failure returns the error.
type Printer struct {
	Out, Err io.Writer
	JSON     bool // print JSON instead of tables
	failure  error
}

// Failure returns the first write error of Out. A command with endless output ends at this error.
func (p *Printer) Failure() error { return p.failure }

// Printf writes to Out.
func (p *Printer) Printf(format string, args ...any) {
	if p.failure == nil {
		_, p.failure = fmt.Fprintf(p.Out, format, args...)
	}
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Size returns the size of a terminal. ok is false if the writer is not a terminal.
func Size(w io.Writer) (width, height int, ok bool) {
	if !IsTerminal(w) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return DefaultWidth, defaultHeight, true
	}
	return width, height, true
}

// PrintJSON writes v with line breaks on a terminal, and as one line elsewhere, so that repeated calls produce JSON
// lines.
func (p *Printer) PrintJSON(v any) {
	if p.failure != nil {
		return
	}
	e := json.NewEncoder(p.Out)
	e.SetEscapeHTML(false)
	if IsTerminal(p.Out) {
		e.SetIndent("", "  ")
	}
	p.failure = e.Encode(v)
}

// AsJSON writes v if the output is JSON, and reports whether it is.
func (p *Printer) AsJSON(v any) bool {
	if p.JSON {
		p.PrintJSON(v)
	}
	return p.JSON
}

// Table returns an empty table. On a terminal it has rounded borders, like the NATS CLI's, and elsewhere bare columns.
func (p *Printer) Table() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	if !IsTerminal(p.Out) {
		t.SetStyle(bareStyle)
		t.SuppressTrailingSpaces()
	}
	if !IsTerminal(p.Out) || os.Getenv("NO_COLOR") != "" { // https://no-color.org
		pretty.DisableColors()
	}
	return t
}

// bareStyle is for pipes: columns that awk can split and that people can read in a log.
var bareStyle = table.Style{
	Name:   "bare",
	Box:    table.BoxStyle{PaddingRight: "  "},
	Format: table.FormatOptions{Header: pretty.FormatUpper},
}

// Row returns a row of a table, in go-pretty's type. It replaces control characters, since names of streams, metadata
// and error texts are untrusted.
func Row(cells ...any) table.Row {
	for i, cell := range cells {
		if s, ok := cell.(string); ok {
			cells[i] = text.Printable(s, MaxCell)
		}
	}
	return cells
}
