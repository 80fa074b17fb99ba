package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// The size of a terminal that does not tell its own.
const standardWidth, standardHeight = 80, 24

// A column of a sheet. Where there is no room for all of it, columns are narrowed, and where that is not enough, left
// out.
type column struct {
	name  string
	drop  int  // the highest is left out first; zero: it stays
	least int  // it may be narrowed to so many characters; zero: it may not
	wrap  bool // what does not fit goes on in the next line; otherwise it is cut
	out   bool // it is not shown
}

// A sheet is a table that fits the terminal. Elsewhere it has all its columns, uncut: a line for each row.
type sheet struct {
	app     *app
	columns []column
	rows    []table.Row
	footer  table.Row
}

func (a *app) sheet(columns ...column) *sheet { return &sheet{app: a, columns: columns} }

// leaveOut hides columns. Rows have a cell for them all the same.
func (s *sheet) leaveOut(names ...string) {
	for i := range s.columns {
		s.columns[i].out = s.columns[i].out || slices.Contains(names, s.columns[i].name)
	}
}

// add adds a row, which has a cell for each column.
func (s *sheet) add(cells ...any) { s.rows = append(s.rows, row(cells...)) }

func (s *sheet) foot(cells ...any) { s.footer = row(cells...) }

// print writes it to stdout.
func (s *sheet) print() {
	t := s.app.table()
	keep, widths := s.all()
	if width, _, ok := s.app.screen(); ok {
		keep, widths = s.fit(width)
		t.SetAllowedRowLength(width)
	}
	var header table.Row
	var configs []table.ColumnConfig
	for _, i := range keep {
		c := s.columns[i]
		header = append(header, c.name)
		if widths[i] == 0 {
			continue
		}
		config := table.ColumnConfig{Number: len(header), WidthMax: widths[i], WidthMaxEnforcer: cut}
		if c.wrap {
			config.WidthMaxEnforcer = text.WrapSoft
		}
		configs = append(configs, config)
	}
	pick := func(r table.Row) table.Row {
		var picked table.Row
		for _, i := range keep {
			picked = append(picked, r[i])
		}
		return picked
	}
	if s.columns[0].name != "" {
		t.AppendHeader(header)
	}
	t.SetColumnConfigs(configs)
	for _, r := range s.rows {
		t.AppendRow(pick(r))
	}
	if s.footer != nil {
		t.AppendFooter(pick(s.footer))
	}
	t.Render()
}

// all returns the columns that are shown where the width has no limit. A width of zero means that.
func (s *sheet) all() (keep, widths []int) {
	for i, c := range s.columns {
		if !c.out {
			keep = append(keep, i)
		}
	}
	return keep, make([]int, len(s.columns))
}

// fit returns the columns that are shown in a terminal of this width. A column that is narrowed has a width above zero.
func (s *sheet) fit(width int) (keep, widths []int) {
	keep, widths = s.all()
	natural := make([]int, len(s.columns))
	for i, c := range s.columns {
		natural[i] = len(c.name)
		for _, r := range append(slices.Clone(s.rows), s.footer) {
			if r != nil {
				natural[i] = max(natural[i], text.StringWidth(fmt.Sprint(r[i])))
			}
		}
	}
	const border, gap = 1, 3 // of a row, and of each of its cells
	room := func(of func(i int) int) int {
		left := width - border
		for _, i := range keep {
			left -= gap + of(i)
		}
		return left
	}
	narrowest := func(i int) int {
		if least := s.columns[i].least; least > 0 {
			return min(natural[i], least)
		}
		return natural[i]
	}
	for room(narrowest) < 0 {
		worst := slices.MaxFunc(keep, func(a, b int) int { return cmp.Compare(s.columns[a].drop, s.columns[b].drop) })
		if s.columns[worst].drop == 0 {
			break
		}
		keep = slices.DeleteFunc(keep, func(i int) bool { return i == worst })
	}
	shown := slices.Clone(natural)
	for room(func(i int) int { return shown[i] }) < 0 { // the widest gives way first
		widest := -1
		for _, i := range keep {
			if shown[i] > narrowest(i) && (widest < 0 || shown[i] > shown[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		shown[widest]--
		widths[widest] = shown[widest]
	}
	return keep, widths
}

// cut shortens a cell to one line.
func cut(s string, width int) string {
	if text.StringWidth(s) <= width {
		return s
	}
	return text.Trim(s, max(width-1, 0)) + "…"
}

// screen is the size of the terminal that stdout is; ok is false where it is none.
func (a *app) screen() (width, height int, ok bool) { return screenOf(a.stdout) }

func screenOf(w io.Writer) (width, height int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !isTerminal(f) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return standardWidth, standardHeight, true
	}
	return width, height, true
}
