package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"delaybroker/broker/inspect"
	"delaybroker/broker/ratelog"
	"delaybroker/cmd/delaybroker/publisher"
	"delaybroker/cmd/delaybroker/terminal"
)

// pubRows is the maximum number of messages that are shown one by one.
const pubRows = 100

// pubAll publishes the message count times. It shows the stored messages also if a publish failed.
func (a *app) pubAll(ctx context.Context, p *publisher.Publisher, count int) error {
	bar := a.Bar("messages", count)
	defer bar.Stop()
	rows := a.Sheet([]terminal.Column{
		{Name: "id", Least: 20, Wrap: true}, {Name: "stream", Drop: 1}, {Name: "due"},
	})
	shown := pubShown{app: a, sheet: rows, bar: bar, of: count}
	shown.told.Allow(inspect.ProgressInterval) // a short run shows no progress
	err := p.Many(ctx, count, shown.add)
	bar.Stop()
	shown.end()
	return err
}

// pubShown collects the messages that were published, and prints them.
type pubShown struct {
	app   *app
	sheet *terminal.Sheet
	bar   *terminal.Bar
	of    int

	mu     sync.Mutex // guards the fields below, and the sheet
	stored int
	told   ratelog.Limit
}

func (s *pubShown) add(m publisher.Published) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored++
	s.bar.Step()
	if s.bar == nil && s.of > 1 {
		if _, ok := s.told.Allow(inspect.ProgressInterval); ok {
			fmt.Fprintf(s.app.Err, "published %d of %d\n", s.stored, s.of)
		}
	}
	if s.app.JSON {
		return s.app.PrintJSON(m)
	}
	if s.sheet.Len() < pubRows {
		s.sheet.Add(cellsOfPublished(m)...)
	}
	return nil
}

func (s *pubShown) end() {
	if s.app.JSON || s.stored == 0 {
		return
	}
	s.sheet.Print()
	if more := s.stored - s.sheet.Len(); more > 0 {
		fmt.Fprintf(s.app.Err, "and %d more; --json prints all of them\n", more)
	}
}

func cellsOfPublished(m publisher.Published) []any {
	id, due := m.ID, m.Due.UTC().Format(time.RFC3339Nano)
	if id == "" {
		id = fmt.Sprintf("%s-%d", m.Stream, m.Sequence)
	}
	if m.Estimated {
		due = "about " + m.Due.UTC().Format(time.RFC3339)
	}
	if m.Duplicate {
		id += " (stored before)"
	}
	return []any{id, m.Stream, due}
}
