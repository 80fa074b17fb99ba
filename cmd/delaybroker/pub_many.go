package main

import (
	"context"
	"fmt"
	"sync"

	"delaybroker/broker/inspect"
	"delaybroker/broker/ratelog"
	"delaybroker/cmd/terminal"
)

const (
	// pubWorkers is how many publishes are in flight at a time. One after the other, each would cost two round trips.
	pubWorkers = 64
	// pubRows is how many of the messages are shown one by one.
	pubRows = 100
)

// pubAll publishes the message count times. It shows what was stored also when a publish failed.
func (a *app) pubAll(ctx context.Context, p *publisher, count int) error {
	bar := a.Bar("messages", count)
	defer bar.Stop()
	rows := a.Sheet([]terminal.Column{{Name: "id", Least: 20, Wrap: true}, {Name: "stream", Drop: 1}, {Name: "due"}})
	shown := pubShown{app: a, sheet: rows, bar: bar, of: count}
	shown.told.Allow(inspect.ProgressEvery) // a short while needs no word
	// The first is published alone: it shows whether publishing works, and whether we may ask when it was stored.
	err := a.pubOne(ctx, p, &shown)
	if err == nil && count > 1 {
		err = a.pubOthers(ctx, p, count-1, &shown)
	}
	bar.Stop()
	shown.end()
	return err
}

func (a *app) pubOne(ctx context.Context, p *publisher, shown *pubShown) error {
	sending, cancel := p.session.Allowed(ctx)
	defer cancel()
	m, err := p.publish(sending)
	if err != nil {
		return err
	}
	return shown.add(m)
}

// pubOthers ends at the first failure; what is in flight then is awaited.
func (a *app) pubOthers(ctx context.Context, p *publisher, count int, shown *pubShown) error {
	ctx, cancel := p.session.Allowed(ctx)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	turns := make(chan struct{})
	var publishing sync.WaitGroup
	for range min(pubWorkers, count) {
		publishing.Go(func() {
			for range turns {
				m, err := p.publish(context.WithoutCancel(ctx))
				if err == nil {
					err = shown.add(m)
				}
				if err != nil {
					fail(err)
				}
			}
		})
	}
	for range count {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(turns)
	publishing.Wait()
	return context.Cause(ctx)
}

// pubShown collects what was published, and prints it.
type pubShown struct {
	app   *app
	sheet *terminal.Sheet
	bar   *terminal.Bar
	of    int

	mu     sync.Mutex // guards what follows, and the sheet
	stored int
	told   ratelog.Limit
}

func (s *pubShown) add(m published) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored++
	s.bar.Step()
	if s.bar == nil && s.of > 1 {
		if _, ok := s.told.Allow(inspect.ProgressEvery); ok {
			fmt.Fprintf(s.app.Err, "published %d of %d\n", s.stored, s.of)
		}
	}
	if s.app.JSON {
		return s.app.PrintJSON(m)
	}
	if s.sheet.Len() < pubRows {
		s.sheet.Add(m.cells()...)
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
