package message

import (
	"fmt"
	"slices"
	"strings"
)

// Ground is a pattern of subjects on which clients request schedules, and the targets that these schedules may have.
// With the server's own scheduling, the stream has this role: a schedule and its target are in one stream. A client
// that may publish on the subjects can have the broker publish to the targets; no other permission is checked.
type Ground struct {
	Subjects string   // a pattern
	Targets  []string // patterns
}

// Grounds do not overlap.
type Grounds []Ground

// ParseGrounds parses settings such as schedules.orders.>=orders.>. Settings with the same subjects are one ground. A
// setting without targets gets the targets in others, which the header Delay-Target may name (DELAY_HEADER_TARGETS).
func ParseGrounds(list string, others []string) Grounds {
	var all Grounds
	for _, word := range Words(list) {
		subjects, target, named := strings.Cut(word, "=")
		i := slices.IndexFunc(all, func(g Ground) bool { return g.Subjects == subjects })
		if i < 0 {
			i = len(all)
			all = append(all, Ground{Subjects: subjects})
		}
		if named {
			all[i].Targets = append(all[i].Targets, target)
		} else {
			all[i].Targets = append(all[i].Targets, others...)
		}
	}
	return all
}

// Check returns the first problem of the grounds. Roots are the first tokens of the broker's own subjects.
func (all Grounds) Check(roots []string) error {
	for i, g := range all {
		first, _, more := strings.Cut(g.Subjects, ".")
		switch {
		case !ValidPattern(g.Subjects) || strings.ContainsAny(first, "*>"):
			return fmt.Errorf("subjects %q: want a pattern that begins with a plain token, as in schedules.>", g.Subjects)
		case first[0] == '$' || first[0] == '_' || slices.Contains(roots, first):
			return fmt.Errorf("subjects %q: want none below $, _ or the broker's own", g.Subjects)
		case !more:
			return fmt.Errorf("subjects %q: want at least two tokens, as in schedules.>", g.Subjects)
		case len(g.Targets) == 0:
			return fmt.Errorf("subjects %q: no target may be named: write the targets behind them, as in %s=orders.>, "+
				"or set DELAY_HEADER_TARGETS", g.Subjects, g.Subjects)
		}
		for _, other := range all[:i] {
			if Overlap(g.Subjects, other.Subjects) {
				return fmt.Errorf("subjects %q and %q overlap: which targets do they have together?", other.Subjects, g.Subjects)
			}
		}
		for _, target := range g.Targets {
			if !ValidPattern(target) {
				return fmt.Errorf("target pattern %q: tokens separated by dots; * for one token, > for the rest", target)
			}
		}
	}
	return nil
}

// Subjects returns the patterns of all grounds.
func (all Grounds) Subjects() []string {
	var subjects []string
	for _, g := range all {
		subjects = append(subjects, g.Subjects)
	}
	return subjects
}

// Of returns the ground of a subject.
func (all Grounds) Of(subject string) (Ground, bool) {
	for _, g := range all {
		if Match(g.Subjects, subject) {
			return g, true
		}
	}
	return Ground{}, false
}

// Allows reports whether a target is among those of the ground.
func (g Ground) Allows(target string) bool { return matchAny(g.Targets, target) }
