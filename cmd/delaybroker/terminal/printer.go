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

// MaxCell is how many characters a table shows of text that somebody else wrote.
const MaxCell = 1000

// StandardWidth and standardHeight are the size of a terminal that does not tell its size.
const StandardWidth, standardHeight = 80, 24

// A Printer is where a verb prints, and how.
type Printer struct {
	Out, Err io.Writer
	JSON     bool // print JSON instead of tables
}

// Is reports whether a writer is a terminal.
func Is(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Size is the size of the terminal that a writer is; ok is false where it is none.
func Size(w io.Writer) (width, height int, ok bool) {
	if !Is(w) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return StandardWidth, standardHeight, true
	}
	return width, height, true
}

// PrintJSON writes v with line breaks on a terminal, and as one line elsewhere, so that many are a stream of lines.
func (p Printer) PrintJSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetEscapeHTML(false)
	if Is(p.Out) {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// Table is an empty table; its Render writes to Out. It has rounded borders on a terminal, as the NATS CLI's have, and
// bare columns elsewhere.
func (p Printer) Table() table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(p.Out)
	t.SetStyle(table.StyleRounded)
	if !Is(p.Out) {
		t.SetStyle(bareStyle)
		t.SuppressTrailingSpaces()
	}
	if !p.colored() {
		pretty.DisableColors()
	}
	return t
}

// colored reports whether Out may have colours: https://no-color.org.
func (p Printer) colored() bool { return Is(p.Out) && os.Getenv("NO_COLOR") == "" }

// bareStyle is for pipes: columns that awk can split and people can read in a log.
var bareStyle = table.Style{
	Name:   "bare",
	Box:    table.BoxStyle{PaddingRight: "  "},
	Format: table.FormatOptions{Header: pretty.FormatUpper},
}

// Row is a row of a table, in go-pretty's type. Names of streams, metadata and error texts come from others, so control
// characters are replaced.
func Row(cells ...any) table.Row {
	for i, cell := range cells {
		if s, ok := cell.(string); ok {
			cells[i] = text.Printable(s, MaxCell)
		}
	}
	return cells
}
