package message

// Rule is a value for the targets that match a pattern.
type Rule[V any] struct {
	Pattern string
	Value   V
}

// Rules are in the order in which Lookup tries them. The first rule whose pattern matches a target applies.
type Rules[V any] []Rule[V]

// Lookup returns the value for a target, or fallback if no rule matches.
func (r Rules[V]) Lookup(target string, fallback V) V {
	for _, rule := range r {
		if Match(rule.Pattern, target) {
			return rule.Value
		}
	}
	return fallback
}

func (r Rules[V]) Patterns() (patterns []string) {
	for _, rule := range r {
		patterns = append(patterns, rule.Pattern)
	}
	return patterns
}
