package terminal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A Column is a column of a Sheet. If the terminal is too narrow, columns are narrowed. If even that does not suffice,
// columns are left out.
type Column struct {
	Name   string
	Drop   int  // the column with the highest value is left out first; zero for never
	Min    int  // minimum width in characters; zero if the column is not narrowed
	Wrap   bool // wrap text that does not fit, instead of cutting it
	Hidden bool // not shown
}

// A Sheet is a table that fits the terminal. If the output is not a terminal, the Sheet has all columns that are not
// hidden, without narrowing, and one line for each row.
type Sheet struct {
	printer *Printer
	columns []Column
	rows    []table.Row
}

// Sheet returns an empty sheet with these columns.
func (p *Printer) Sheet(columns []Column) *Sheet { return &Sheet{printer: p, columns: columns} }

// Hide hides columns. Rows still have a cell for them.
func (s *Sheet) Hide(names ...string) {
	for i := range s.columns {
		s.columns[i].Hidden = s.columns[i].Hidden || slices.Contains(names, s.columns[i].Name)
	}
}

// Add adds a row, with a cell for each column.
func (s *Sheet) Add(cells ...any) { s.rows = append(s.rows, Row(cells...)) }

// Len returns the number of rows.
func (s *Sheet) Len() int { return len(s.rows) }

// Print writes the sheet to Out.
func (s *Sheet) Print() {
	t := s.printer.Table()
	keep, widths := s.visible()
	if width, _, ok := Size(s.printer.Out); ok {
		keep, widths = s.fit(width)
		t.SetAllowedRowLength(width)
	}
	var header table.Row
	var configs []table.ColumnConfig
	for _, i := range keep {
		c := s.columns[i]
		header = append(header, c.Name)
		if widths[i] == 0 {
			continue
		}
		config := table.ColumnConfig{Number: len(header), WidthMax: widths[i], WidthMaxEnforcer: Truncate}
		if c.Wrap {
			config.WidthMaxEnforcer = text.WrapSoft
		}
		configs = append(configs, config)
	}
	if s.columns[0].Name != "" {
		t.AppendHeader(header)
	}
	t.SetColumnConfigs(configs)
	for _, r := range s.rows {
		var shown table.Row
		for _, i := range keep {
			shown = append(shown, r[i])
		}
		t.AppendRow(shown)
	}
	s.printer.Printf("%s\n", t.Render())
}

// visible returns the columns that are not hidden. Their widths are zero, which means no limit.
func (s *Sheet) visible() (keep, widths []int) {
	for i, c := range s.columns {
		if !c.Hidden {
			keep = append(keep, i)
		}
	}
	return keep, make([]int, len(s.columns))
}

// fit returns the columns that are shown in a terminal of this width, and the width of each narrowed column. All other
// widths are zero.
func (s *Sheet) fit(width int) (keep, widths []int) {
	keep, widths = s.visible()
	natural := make([]int, len(s.columns))
	for i, c := range s.columns {
		natural[i] = len(c.Name)
		for _, r := range s.rows {
			natural[i] = max(natural[i], text.StringWidth(fmt.Sprint(r[i])))
		}
	}
	const border, gap = 1, 3 // characters of borders in a row, and additionally in each cell
	room := func(widthOf func(i int) int) int {
		free := width - border
		for _, i := range keep {
			free -= gap + widthOf(i)
		}
		return free
	}
	narrowest := func(i int) int {
		if minWidth := s.columns[i].Min; minWidth > 0 {
			return min(natural[i], minWidth)
		}
		return natural[i]
	}
	for room(narrowest) < 0 {
		dropped := slices.MaxFunc(keep, func(a, b int) int { return cmp.Compare(s.columns[a].Drop, s.columns[b].Drop) })
		if s.columns[dropped].Drop == 0 {
			break
		}
		keep = slices.DeleteFunc(keep, func(i int) bool { return i == dropped })
	}
	current := slices.Clone(natural)
	for room(func(i int) int { return current[i] }) < 0 { // the widest column is narrowed first
		widest := -1
		for _, i := range keep {
			if current[i] > narrowest(i) && (widest < 0 || current[i] > current[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		current[widest]--
		widths[widest] = current[widest]
	}
	return keep, widths
}

// Truncate shortens a longer cell to width characters, the last of which is an ellipsis.
func Truncate(s string, width int) string {
	if text.StringWidth(s) <= width {
		return s
	}
	return text.Trim(s, max(width-1, 0)) + "…"
}
