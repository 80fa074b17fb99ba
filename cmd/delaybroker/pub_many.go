package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/publisher"
	"delaybroker/cmd/delaybroker/terminal"
)

// pubAll publishes count copies of the message. It shows the stored copies even if a publish failed.
func (a *app) pubAll(ctx context.Context, p *publisher.Publisher, count int) error {
	bar := a.Bar("messages", count)
	defer bar.Stop()
	summary := pubSummary{app: a, bar: bar}
	err := p.Publish(ctx, count, summary.add)
	bar.Stop()
	if summary.stored > 0 && !a.JSON {
		summary.print(count)
	}
	return err
}

// pubSummary summarizes the published messages. All of them have one subject, and so are in one stream.
type pubSummary struct {
	app *app
	bar *terminal.Bar

	mu          sync.Mutex // guards the fields below
	stored      int
	duplicates  int                 // messages that were already stored under their Nats-Msg-Id
	first, last publisher.Published // by sequence
}

func (s *pubSummary) add(m publisher.Published) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar.Step()
	if s.stored++; m.Duplicate {
		s.duplicates++
	}
	if s.stored == 1 || m.Sequence < s.first.Sequence {
		s.first = m
	}
	if m.Sequence > s.last.Sequence {
		s.last = m
	}
	s.app.AsJSON(m)
	return s.app.Failure()
}

// print prints one row: the message, or a summary if count is above 1.
func (s *pubSummary) print(count int) {
	m, last := s.first, s.last
	if count == 1 {
		t := s.app.Sheet([]terminal.Column{{Name: "id", Min: 20, Wrap: true}, {Name: "stream", Drop: 1}, {Name: "due"}})
		id := m.ID
		if id == "" {
			id = fmt.Sprintf("%s-%d", m.Stream, m.Sequence)
		}
		if m.Duplicate {
			id += " (stored before)"
		}
		t.Add(id, m.Stream, formatDue(m))
		t.Print()
		return
	}
	t := s.app.Sheet([]terminal.Column{{Name: "accepted"}, {Name: "stored before", Hidden: s.duplicates == 0},
		{Name: "stream", Drop: 1}, {Name: "sequences"}, {Name: "first due"}, {Name: "last due", Drop: 2}})
	sequences := fmt.Sprintf("%d to %d", m.Sequence, last.Sequence)
	t.Add(strconv.Itoa(s.stored), strconv.Itoa(s.duplicates), m.Stream, sequences, formatDue(m), formatDue(last))
	t.Print()
}

func formatDue(m publisher.Published) string {
	if m.Estimated {
		return "about " + text.ShortMoment(m.Due)
	}
	return text.Moment(m.Due)
}
