package message

import (
	"fmt"
	"slices"
	"strings"
)

// ScheduleRule is a pattern of subjects on which clients request schedules, and the targets that these schedules may
// have. A client that may publish on the subjects can make the broker publish to the targets: the broker checks no
// other permission of the client. The server's own scheduling needs no such rule, because a schedule and its target are
// in one stream.
type ScheduleRule struct {
	Subjects string   // a pattern
	Targets  []string // patterns
}

// ScheduleRules is a list of rules. If Check returns nil, no two rules have overlapping subjects.
type ScheduleRules []ScheduleRule

// ParseScheduleRules parses a list of settings. Each setting is a pattern of subjects, or "<subjects>=<target>".
// Settings with the same subjects become one rule. A setting without a target gets the default targets
// (DELAY_HEADER_TARGETS).
func ParseScheduleRules(list string, defaults []string) ScheduleRules {
	var rules ScheduleRules
	for _, word := range SplitList(list) {
		subjects, target, hasTarget := strings.Cut(word, "=")
		i := slices.IndexFunc(rules, func(r ScheduleRule) bool { return r.Subjects == subjects })
		if i < 0 {
			i = len(rules)
			rules = append(rules, ScheduleRule{Subjects: subjects})
		}
		if hasTarget {
			rules[i].Targets = append(rules[i].Targets, target)
		} else {
			rules[i].Targets = append(rules[i].Targets, defaults...)
		}
	}
	return rules
}

// Check returns the first problem of the rules. Roots are the first tokens of the broker's own subjects.
func (rules ScheduleRules) Check(roots []string) error {
	for i, r := range rules {
		first, _, more := strings.Cut(r.Subjects, ".")
		switch {
		case !ValidPattern(r.Subjects) || strings.ContainsAny(first, "*>"):
			return fmt.Errorf("subjects %q: want a pattern that begins with a plain token, as in schedules.>", r.Subjects)
		case first[0] == '$' || first[0] == '_' || slices.Contains(roots, first):
			return fmt.Errorf("subjects %q: the first token must not begin with $ or _, or be one of the broker's: %s",
				r.Subjects, strings.Join(roots, ", "))
		case !more:
			return fmt.Errorf("subjects %q: want at least two tokens, as in schedules.>", r.Subjects)
		case len(r.Targets) == 0:
			return fmt.Errorf("subjects %q have no targets: write the targets after the subjects, as in %s=orders.>, "+
				"or set DELAY_HEADER_TARGETS", r.Subjects, r.Subjects)
		}
		for _, other := range rules[:i] {
			if Overlap(r.Subjects, other.Subjects) {
				return fmt.Errorf("subjects %q and %q overlap: remove or narrow one of them", other.Subjects, r.Subjects)
			}
		}
		for _, target := range r.Targets {
			if !ValidPattern(target) {
				return fmt.Errorf("target pattern %q: tokens separated by dots; * for one token, > for the rest", target)
			}
		}
	}
	return nil
}

// Subjects returns the patterns of all rules.
func (rules ScheduleRules) Subjects() []string {
	var subjects []string
	for _, r := range rules {
		subjects = append(subjects, r.Subjects)
	}
	return subjects
}

// Lookup returns the first rule whose pattern matches a subject.
func (rules ScheduleRules) Lookup(subject string) (ScheduleRule, bool) {
	for _, r := range rules {
		if Match(r.Subjects, subject) {
			return r, true
		}
	}
	return ScheduleRule{}, false
}

// Tenant returns the tenant of a schedule's subject, by the first rule whose pattern matches it. If all targets of the
// rule have the same first token, that token is the tenant, as for a timer. Otherwise, the tenant is the token after
// the tokens with which the pattern begins: of schedules.att.x by schedules.>, it is att. Without a rule, it is the
// first token.
func (rules ScheduleRules) Tenant(subject string) string {
	r, _ := rules.Lookup(subject)
	var tenants []string
	for _, target := range r.Targets {
		tenants = append(tenants, Tenant(target))
	}
	if tenants = slices.Compact(tenants); len(tenants) == 1 && !strings.ContainsAny(tenants[0], "*>") {
		return tenants[0]
	}
	tokens := strings.Split(subject, ".")
	literal := strings.Split(r.Subjects, ".")
	n := slices.IndexFunc(literal, func(token string) bool { return strings.ContainsAny(token, "*>") })
	if n < 0 { // no wildcard, or no rule
		n = len(literal) - 1
	}
	return tokens[min(n, len(tokens)-1)]
}

// Allows reports whether the rule allows a target.
func (r ScheduleRule) Allows(target string) bool { return matchAny(r.Targets, target) }
