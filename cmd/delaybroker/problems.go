package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"delaybroker/levels"
)

// problems collects everything that is wrong with the settings, so that one look at the log is enough to correct them.
// Its methods read a value and, where they cannot, note why and return something harmless.
type problems []error

// refuse notes what is wrong with a setting. It shows the value, so it is not for secrets: see [problems.refuseSecret].
func (p *problems) refuse(name, value, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s=%q: %w", name, value, fmt.Errorf(format, args...)))
}

func (p *problems) refuseSecret(name, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s: %w", name, fmt.Errorf(format, args...)))
}

// err is nil when there are no problems.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%w", errConfig, errors.Join(p...))
}

func (p *problems) duration(name, value string, low, high time.Duration) time.Duration {
	d, err := levels.ParseDuration(value)
	switch {
	case err != nil:
		p.refuse(name, value, "%w", err)
	case d < low || d > high:
		p.refuse(name, value, "want %s to %s", levels.FormatDuration(low), levels.FormatDuration(high))
	}
	return d
}

func (p *problems) number(name, value string, low, high int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < low || n > high {
		p.refuse(name, value, "want a whole number from %d to %d", low, high)
	}
	return n
}

// unbounded is what says that there is no limit.
const unbounded = "none"

// count is a limit on messages, zero for none.
func (p *problems) count(name, value string) int64 {
	if value == unbounded {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		p.refuse(name, value, "want a whole number from 1, or %s", unbounded)
	}
	return n
}

// bytes is a limit on bytes, zero for none.
func (p *problems) bytes(name, value string) int64 {
	if value == unbounded {
		return 0
	}
	n, err := humanize.ParseBytes(value)
	if err != nil || n < 1 || n > math.MaxInt64 {
		p.refuse(name, value, "want bytes such as 500MB or 10GiB, or %s", unbounded)
	}
	return int64(n)
}

// has reports whether something is wrong with the setting already.
func (p *problems) has(name string) bool {
	return slices.ContainsFunc(*p, func(err error) bool { return strings.HasPrefix(err.Error(), name+"=") })
}

func (p *problems) oneOf(name, value string, allowed ...string) string {
	if !slices.Contains(allowed, value) {
		p.refuse(name, value, "want one of %s", strings.Join(allowed, ", "))
	}
	return value
}

// list separates at commas.
func list(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}
