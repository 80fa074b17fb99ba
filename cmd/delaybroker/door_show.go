package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/operation"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

// This file shows the results of operations that look.

// look shows the rows of a list, or the facts of a look-up.
func (w *door) look(ctx context.Context, d *operation.Desk, check func(error) error) error {
	var rows []any
	end, err := w.use.Look(ctx, d, func(row any) error {
		if !w.AsJSON(row) {
			rows = append(rows, row)
		}
		return w.Failure()
	})
	if refused := check(err); refused != nil {
		return refused
	}
	switch {
	case w.JSON && err == nil && end.Value != nil:
		w.PrintJSON(end.Value)
	case w.JSON && err == nil && end.Exit != nil && end.Answer != nil && len(rows) == 0 && end.Empty != "":
		w.PrintJSON(end.Answer)
	case w.JSON:
	case w.view != nil && len(rows) > 0:
		w.view(w, rows[0])
	case w.Facts:
		for _, row := range rows {
			w.printFacts(row)
		}
	case len(rows) > 0:
		w.printRows(w.columns(), rows)
	}
	if err != nil {
		return err
	}
	if len(rows) == 0 && !w.JSON && end.Empty != "" {
		w.Printf("%s\n", end.Empty)
	}
	w.printNotes(end)
	if end.Exit != nil {
		return reportedError{end.Exit}
	}
	return w.Failure()
}

// printNotes writes what the reader of a table must know to stderr. JSON has the facts.
func (w *door) printNotes(end operation.End) {
	if w.JSON && len(end.Next) == 0 {
		return
	}
	for _, note := range end.Notes {
		fmt.Fprintln(w.Err, text.Printable(note, terminal.MaxCell))
	}
	if len(end.Next) > 0 {
		u := w.use
		for _, name := range sortedKeys(end.Next) {
			_ = u.Param(name).Set(end.Next[name]) // cannot fail: the operation has made the text
		}
		fmt.Fprintln(w.Err, "there may be more: "+w.Line(u, false))
	}
}

func (w *door) columns() []operation.Column {
	if w.use.Columns != nil {
		return w.use.Columns
	}
	return w.Columns
}

// printRows prints a table of rows.
func (a *app) printRows(columns []operation.Column, rows []any) {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c operation.Column) bool {
		return c.Kind == operation.Rounds ||
			c.Rare && !slices.ContainsFunc(rows, func(row any) bool { return operation.Value(row, c.Field) != nil })
	})
	var shown []terminal.Column
	for _, c := range columns {
		shown = append(shown, terminal.Column{Name: c.Name, Drop: c.Drop, Min: c.Min, Wrap: c.Wrap})
	}
	sheet := a.Sheet(shown)
	for _, row := range rows {
		var cells []any
		for _, c := range columns {
			cells = append(cells, cell(c, row))
		}
		sheet.Add(cells...)
	}
	sheet.Print()
}

func (w *door) printFacts(row any) {
	t := w.Sheet([]terminal.Column{{}, {Min: 12, Wrap: true}})
	line := func(name, value string) { t.Add(name, text.Printable(strings.TrimSpace(value), 2000)) }
	for _, c := range w.columns() {
		switch c.Kind {
		case operation.Runs: // a table of its own
			continue
		case operation.Refusals:
			refusals, _ := operation.Value(row, c.Field).([]message.Refusal)
			for _, r := range refusals {
				line(c.Name, text.Moment(r.At)+" "+r.Reason)
			}
			continue
		case operation.Header:
			headers, _ := operation.Value(row, c.Field).(map[string][]string)
			for _, name := range sortedKeys(headers) {
				line(c.Name, name+": "+strings.Join(headers[name], ", "))
			}
			continue
		}
		if value := fact(c, row); value != "" {
			line(c.Name, value)
		}
	}
	t.Print()
	if payload, ok := operation.Value(row, "payload").([]byte); ok && payload != nil {
		w.showBody(payload)
	}
	if runs, ok := operation.Value(row, "runs").([]inspect.Record); ok && len(runs) > 0 {
		w.Printf("\nlast runs\n")
		var rows []any
		for _, r := range runs {
			rows = append(rows, r)
		}
		w.printRows(operation.RunColumns, rows)
	}
}
