package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/deadletter"
)

// What dead letters are counted by.
const (
	byCode   = "code"
	byTarget = "target"
	byReason = "reason"
)

// mostGroups bounds what is kept while counting: targets may be as many as letters. What comes after is counted as one.
const mostGroups = 20_000

// letterGroup is the letters that are alike.
type letterGroup struct {
	Letters int       `json:"letters"`
	Code    string    `json:"code,omitempty"`
	Target  string    `json:"target,omitempty"`
	Reason  string    `json:"reason,omitempty"` // with # for every number, since those differ
	Oldest  time.Time `json:"oldest"`
	Newest  time.Time `json:"newest"`
	Number  uint64    `json:"number"` // of the newest
}

// letterCount is how many letters there are of each kind, the most first.
type letterCount struct {
	Letters int            `json:"letters"`
	Groups  []*letterGroup `json:"groups"`
}

var numbers = regexp.MustCompile(`[0-9]+`)

// checkBy refuses what letters cannot be counted by.
func checkBy(by []string) error {
	for _, name := range by {
		if name != byCode && name != byTarget && name != byReason {
			return fmt.Errorf("%w: --by %q: want some of %s", errUsage, name, strings.Join([]string{byCode, byTarget, byReason}, ", "))
		}
	}
	return nil
}

// deadCount counts letters, of which it reads no more than the headers.
func (a *app) deadCount(ctx context.Context, d *desk, by []string, limit int) error {
	type key struct{ code, target, reason string }
	groups := make(map[key]*letterGroup)
	count := letterCount{Groups: []*letterGroup{}}
	watch := lookout{app: a, what: "dead letters"}
	for l, err := range d.box.List(ctx, deadletter.Query{Filter: d.filter, HeadersOnly: true, Progress: watch.look}) {
		if err != nil {
			watch.bar.stop()
			return err
		}
		var k key
		if slices.Contains(by, byCode) {
			k.code = string(l.Code)
		}
		if slices.Contains(by, byTarget) {
			k.target = cmp.Or(l.Target, "-")
		}
		if slices.Contains(by, byReason) {
			k.reason = numbers.ReplaceAllString(reasonOf(l), "#")
		}
		g := groups[k]
		if g == nil && len(groups) >= mostGroups {
			k = key{reason: "all others"}
			g = groups[k]
		}
		if g == nil {
			g = &letterGroup{Code: k.code, Target: k.target, Reason: k.reason, Oldest: l.At.UTC()}
			groups[k] = g
			count.Groups = append(count.Groups, g)
		}
		count.Letters++
		g.Letters++
		g.Newest, g.Number = l.At.UTC(), l.Sequence
	}
	watch.bar.stop()
	slices.SortStableFunc(count.Groups, func(a, b *letterGroup) int { return cmp.Compare(b.Letters, a.Letters) })
	return a.showCount(count, d.filter, by, limit)
}

func (a *app) showCount(c letterCount, f deadletter.Filter, by []string, limit int) error {
	if a.json {
		return a.printJSON(c)
	}
	if c.Letters == 0 {
		_, err := fmt.Fprintln(a.stdout, none(f))
		return err
	}
	t := a.sheet(
		column{name: "letters"}, column{name: byCode, least: 8}, column{name: byTarget, least: 10}, column{name: byReason, least: 12, wrap: true},
		column{name: "oldest", drop: 2}, column{name: "newest", drop: 1}, column{name: "such as number", drop: 3},
	)
	for _, name := range []string{byCode, byTarget, byReason} {
		if !slices.Contains(by, name) {
			t.leaveOut(name)
		}
	}
	for i, g := range c.Groups {
		if limit > 0 && i == limit {
			break
		}
		t.add(g.Letters, g.Code, printable(g.Target, 256), printable(g.Reason, 600), second(g.Oldest), second(g.Newest), fmt.Sprint(g.Number))
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
