package message

// Rule is what holds for the targets of a pattern.
type Rule[V any] struct {
	Pattern string
	Value   V
}

// Rules are asked in their order: the first whose pattern matches holds.
type Rules[V any] []Rule[V]

// For is what holds for a target: the value of a rule, or else the given default.
func (r Rules[V]) For(target string, otherwise V) V {
	for _, rule := range r {
		if Match(rule.Pattern, target) {
			return rule.Value
		}
	}
	return otherwise
}

// Patterns are those of all rules, in their order.
func (r Rules[V]) Patterns() (all []string) {
	for _, rule := range r {
		all = append(all, rule.Pattern)
	}
	return all
}
