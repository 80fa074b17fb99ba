package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
)

// checkBy refuses what letters cannot be counted by.
func checkBy(by []string) error {
	known := []string{inspect.ByCode, inspect.ByTarget, inspect.ByReason}
	for _, name := range by {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w: --by %q: want some of %s", errUsage, name, strings.Join(known, ", "))
		}
	}
	return nil
}

func (a *app) deadCount(ctx context.Context, d deadLetters, by []string, limit int) error {
	told := progress{app: a}
	count, err := d.Count(ctx, d.filter, by, told.look)
	told.bar.stop()
	if err != nil {
		return err
	}
	return a.showCount(count, d.filter, by, limit)
}

func (a *app) showCount(c inspect.LetterCount, f deadletter.Filter, by []string, limit int) error {
	if a.json {
		return a.printJSON(c)
	}
	if c.Letters == 0 {
		_, err := fmt.Fprintln(a.stdout, none(f))
		return err
	}
	t := a.sheet(
		column{name: "letters"}, column{name: "code", least: 8}, column{name: "target", least: 10},
		column{name: "reason", least: 12, wrap: true},
		column{name: "oldest", drop: 2}, column{name: "newest", drop: 1}, column{name: "such as number", drop: 3},
	)
	for _, name := range []string{inspect.ByCode, inspect.ByTarget, inspect.ByReason} {
		if !slices.Contains(by, name) {
			t.leaveOut(name)
		}
	}
	for i, g := range c.Groups {
		if limit > 0 && i == limit {
			break
		}
		t.add(g.Letters, g.Code, inspect.Printable(g.Target, 256), inspect.Printable(g.Reason, 600),
			second(g.Oldest), second(g.Newest), fmt.Sprint(g.Number))
	}
	t.print()
	shown := ""
	if limit > 0 && len(c.Groups) > limit {
		shown = fmt.Sprintf(", of which the first %d are shown; --limit 0 shows all", limit)
	}
	fmt.Fprintf(a.stderr, "%s in %s%s\n", counted(c.Letters, "dead letter"), counted(len(c.Groups), "group"), shown)
	return nil
}

// second is a time for a list, with its zone.
func second(t time.Time) string { return t.UTC().Format(time.RFC3339) }
