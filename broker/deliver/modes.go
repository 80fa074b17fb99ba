package deliver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"delaybroker/broker/message"
)

// Modes says how targets are reached: the mode of the first rule whose pattern matches, otherwise the default.
type Modes struct {
	Default message.Mode // empty means auto
	Rules   []Rule
}

// Rule gives the targets of a pattern a mode.
type Rule struct {
	Pattern string
	Mode    message.Mode
}

// ParseModes reads "auto", or rules before a default as in "shop.>=stream,ui.*=core,auto".
func ParseModes(s string) (Modes, error) {
	var m Modes
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		if pattern, mode, ok := strings.Cut(word, "="); ok {
			m.Rules = append(m.Rules, Rule{Pattern: pattern, Mode: message.Mode(mode)})
			continue
		}
		if m.Default != "" {
			return m, fmt.Errorf("modes %q: two defaults, %s and %s", s, m.Default, word)
		}
		m.Default = message.Mode(word)
	}
	return m, m.Validate()
}

// Validate reports modes that do not exist.
func (m Modes) Validate() error {
	var all []error
	check := func(mode message.Mode, where string) {
		if !slices.Contains(message.Modes(), mode) {
			all = append(all, fmt.Errorf("delivery mode %q%s: want auto, stream, core or request", mode, where))
		}
	}
	if m.Default != "" {
		check(m.Default, "")
	}
	for _, r := range m.Rules {
		check(r.Mode, " for "+r.Pattern)
	}
	return errors.Join(all...)
}

// of is the mode for one message.
func (m Modes) of(asked message.Mode, target string) message.Mode {
	if asked != "" {
		return asked
	}
	for _, r := range m.Rules {
		if message.Match(r.Pattern, target) {
			return r.Mode
		}
	}
	if m.Default != "" {
		return m.Default
	}
	return message.Auto
}
