package message

// Rule has the value for the targets of a pattern.
type Rule[V any] struct {
	Pattern string
	Value   V
}

// Rules apply in their order: the first rule whose pattern matches has the value.
type Rules[V any] []Rule[V]

// Lookup returns the value for a target, or the given default if no rule matches.
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
