package deliver

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"delaybroker/broker/message"
)

// Modes are the delivery modes of targets. A target has the mode of the first rule whose pattern matches. Default is
// the mode of all other targets.
type Modes struct {
	Default message.Mode // empty means auto
	Rules   message.Rules[message.Mode]
}

// ParseModes parses rules of the form pattern=mode, and at most one default, as in "shop.>=stream,ui.*=core,auto".
func ParseModes(s string) (Modes, error) {
	var m Modes
	for _, word := range message.SplitList(s) {
		if pattern, mode, ok := strings.Cut(word, "="); ok {
			m.Rules = append(m.Rules, message.Rule[message.Mode]{Pattern: pattern, Value: message.Mode(mode)})
			continue
		}
		if m.Default != "" {
			return m, fmt.Errorf("modes %q: two defaults, %s and %s", s, m.Default, word)
		}
		m.Default = message.Mode(word)
	}
	return m, m.Validate()
}

// Validate returns an error that names each mode that does not exist, or nil.
func (m Modes) Validate() error {
	var errs []error
	check := func(mode message.Mode, where string) {
		if !slices.Contains(message.Modes(), mode) {
			errs = append(errs, fmt.Errorf("delivery mode %q%s: want auto, stream, core or request", mode, where))
		}
	}
	if m.Default != "" {
		check(m.Default, "")
	}
	for _, r := range m.Rules {
		check(r.Value, " for "+r.Pattern)
	}
	return errors.Join(errs...)
}

// mode returns the mode for a message: the requested mode unless it is empty, and otherwise the mode of the target.
func (m Modes) mode(requested message.Mode, target string) message.Mode {
	if requested != "" {
		return requested
	}
	return m.Rules.Lookup(target, cmp.Or(m.Default, message.ModeAuto))
}
