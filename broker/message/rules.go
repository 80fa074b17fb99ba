package message

// Rule is a value for the targets that match a pattern.
type Rule[V any] struct {
	Pattern string
	Value   V
}

// Rules is a list of rules. The first rule whose pattern matches a target applies to the target.
type Rules[V any] []Rule[V]

// Lookup returns the value for a target, or otherwise if no rule matches.
func (r Rules[V]) Lookup(target string, otherwise V) V {
	for _, rule := range r {
		if Match(rule.Pattern, target) {
			return rule.Value
		}
	}
	return otherwise
}

// Patterns returns the patterns of all rules, in their order.
func (r Rules[V]) Patterns() (all []string) {
	for _, rule := range r {
		all = append(all, rule.Pattern)
	}
	return all
}
