package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/test/rivals/bench"
)

// benchInterval is the interval at which the line of bench is redrawn.
const benchInterval = 100 * time.Millisecond

// A benchLine shows the progress of bench. On a terminal it redraws one line. Elsewhere, and with --json, it prints a
// line for each step.
type benchLine struct {
	app      *app
	rounds   int
	lastDraw time.Time // zero before the first drawing
	lastStep string    // the last shown step
}

func (l *benchLine) show(p bench.Progress) {
	text := p.Activity
	switch {
	case p.Side != "" && l.rounds > 1:
		text = fmt.Sprintf("%s %d of %d: %s", p.Side, p.Round, l.rounds, p.Activity)
	case p.Side != "":
		text = fmt.Sprintf("%s: %s", p.Side, p.Activity)
	}
	width, _, isScreen := terminal.Size(l.app.Err)
	switch {
	case !isScreen || l.app.JSON:
		if text != l.lastStep {
			fmt.Fprintln(l.app.Err, text)
		}
	case text != l.lastStep || time.Since(l.lastDraw) >= benchInterval:
		l.lastDraw = time.Now()
		// A line that the terminal wraps could not be redrawn.
		fmt.Fprintf(l.app.Err, "\r\x1b[K%s", terminal.Truncate(text+formatProgress(p), width-1))
	}
	l.lastStep = text
}

// formatProgress returns the bars and numbers of published and arrived messages. It returns "" before the first
// acknowledgement.
func formatProgress(p bench.Progress) string {
	if p.Count == 0 || p.Accepted == 0 {
		return ""
	}
	const width = 10
	return fmt.Sprintf("  %s %s published  %s %s arrived, of %s",
		terminal.DrawPart(p.Accepted, p.Count, width), terminal.Whole(p.Accepted),
		terminal.DrawPart(p.Arrived, p.Count, width), terminal.Whole(p.Arrived), terminal.Whole(p.Count))
}

// clear removes the line from a terminal.
func (l *benchLine) clear() {
	if !l.lastDraw.IsZero() {
		fmt.Fprint(l.app.Err, "\r\x1b[K")
	}
}

// showReport prints the results, the comparison of the sides, and the comparison with an earlier run.
func (a *app) showReport(baseline, r *bench.Report, wide bool) error {
	if a.AsJSON(r) {
		return nil
	}
	a.Printf("%s\n\n", describeScenario(r))
	a.benchTable(r, wide).Print()
	for _, result := range r.Results {
		if result.Unsupported != "" {
			a.Printf("%s: %s\n", result.Side, result.Unsupported)
		}
	}
	if len(r.Ratios) > 0 {
		a.Printf("\nratios to the broker, median of the rounds\n")
		a.ratioTable(r.Ratios, "broker", "value").Print()
	}
	if baseline == nil {
		return nil
	}
	a.Printf("\nthe run of %s, compared with this run\n", text.ShortMoment(baseline.When))
	if differences := bench.Differences(baseline, r); len(differences) > 0 {
		a.Printf("differences: %s\n", strings.Join(differences, ", "))
	}
	if len(r.Compared) == 0 {
		return errors.New("the two runs have no side and metric in common")
	}
	a.ratioTable(r.Compared, "then", "now").Print()
	return nil
}

// benchTable returns a table with a row for each turn of each side. It has a column for each main metric that has a
// value in at least one turn. If wide is set, it has a column for each other metric too.
func (a *app) benchTable(r *bench.Report, wide bool) *terminal.Sheet {
	metrics := slices.DeleteFunc(slices.Clone(bench.Metrics), func(m bench.Metric) bool {
		return !wide && !m.HasRatios || !slices.ContainsFunc(r.Results, func(result bench.Result) bool {
			_, ok := m.Value(result)
			return ok
		})
	})
	columns := []terminal.Column{{Name: "side"}, {Name: "round", Drop: 1, Hidden: r.Plan.Rounds == 1}}
	for i, m := range metrics {
		c := terminal.Column{Name: m.Name, Drop: 2 + i} // a narrow terminal loses the last metrics first
		if !m.HasRatios {
			c.Drop += len(metrics)
		}
		columns = append(columns, c)
	}
	columns = append(columns, []terminal.Column{{Name: "lost"}, {Name: "early"}, {Name: "twice"}}...)
	t := a.Sheet(columns)
	for _, result := range r.Results {
		if result.Unsupported != "" {
			continue
		}
		cells := []any{string(result.Side), strconv.Itoa(result.Round)}
		for _, m := range metrics {
			cell := "-"
			if n, ok := m.Value(result); ok {
				cell = terminal.Figure(n)
			}
			cells = append(cells, cell)
		}
		cells = append(cells, result.Lost, result.Early, result.Twice)
		t.Add(cells...)
	}
	return t
}

// ratioTable returns a table of ratios. From and to are the headings of the two compared values.
func (a *app) ratioTable(ratios []bench.Ratio, from, to string) *terminal.Sheet {
	spread := slices.ContainsFunc(ratios, func(r bench.Ratio) bool { return r.Lowest != r.Highest })
	t := a.Sheet([]terminal.Column{{Name: "side"}, {Name: "metric"}, {Name: from}, {Name: to},
		{Name: "ratio"}, {Name: "lowest", Drop: 1, Hidden: !spread}, {Name: "highest", Drop: 1, Hidden: !spread}})
	for _, r := range ratios {
		t.Add(string(r.Side), r.Metric, terminal.Figure(r.Base), terminal.Figure(r.Value), terminal.Figure(r.Median),
			terminal.Figure(r.Lowest), terminal.Figure(r.Highest))
	}
	return t
}
