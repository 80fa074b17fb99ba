package settings

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/levels"
)

// ErrConfig is returned for invalid settings. The error has a line for each problem.
var ErrConfig = errors.New("configuration")

// A problem is an invalid setting.
type problem struct {
	name string // of the variable
	err  error  // contains the name, too
}

// problems collects all invalid settings, so that a user can correct all of them after one start. A method that parses
// a value notes the reason if the value is invalid. Its result is then not usable.
type problems []problem

// refuse notes a problem with a setting. It shows the value, so it is not for secrets: see [problems.refuseSecret].
func (p *problems) refuse(name, value, format string, args ...any) {
	*p = append(*p, problem{name, fmt.Errorf("%s=%q: %w", name, value, fmt.Errorf(format, args...))})
}

// refuseSecret notes a problem with a setting, and does not show the value.
func (p *problems) refuseSecret(name, format string, args ...any) {
	*p = append(*p, problem{name, fmt.Errorf("%s: %w", name, fmt.Errorf(format, args...))})
}

// checkBroker lets the broker check its configuration. It notes each problem with a field under the variable that sets
// the field, unless that variable already has a problem. The keys of variables are the fields.
func (p *problems) checkBroker(c broker.Config, variables map[string]variable) {
	known := slices.Clone(*p)
	_, err := c.Complete()
	bad, _ := errors.AsType[config.FieldErrors](err)
	for _, e := range bad {
		v, text := variables[e.Field], e.Problem
		if e.OtherField != "" {
			text = strings.Replace(text, e.OtherField, variables[e.OtherField].name(), 1)
		}
		if word := v.Get("word"); word != "" {
			text = strings.Replace(text, "want ", "want "+word+", or ", 1)
		}
		if !known.has(v.name()) {
			p.refuseVariable(v, "%s", text)
		}
	}
}

// refuseVariable notes a problem with a variable. It does not show a secret value.
func (p *problems) refuseVariable(v variable, format string, args ...any) {
	if v.Get("secret") != "" {
		p.refuseSecret(v.name(), format, args...)
		return
	}
	p.refuse(v.name(), *v.value, format, args...)
}

// has reports whether there is a problem with a variable.
func (p problems) has(name string) bool {
	return slices.ContainsFunc(p, func(one problem) bool { return one.name == name })
}

// withNames returns the problems with these variables.
func (p problems) withNames(names ...string) problems {
	return slices.DeleteFunc(slices.Clone(p), func(one problem) bool { return !slices.Contains(names, one.name) })
}

// err returns nil if there are no problems.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	errs := make([]error, len(p))
	for i, one := range p {
		errs[i] = one.err
	}
	return fmt.Errorf("%w:\n%w", ErrConfig, errors.Join(errs...))
}

// refusedValue is a value that the broker refuses for each field that gets it, except TimerHistory, for which it means
// no history. It replaces zero, which the broker would take for the default.
const refusedValue = -1

// duration parses a duration for a field of the broker, which checks the bounds. It returns zero, the default, for an
// unparsable value, and refusedValue for a duration of zero.
func (p *problems) duration(name, value string) time.Duration {
	d, err := levels.ParseDuration(value)
	switch {
	case err != nil:
		p.refuse(name, value, "%w", err)
	case d == 0:
		return refusedValue
	}
	return d
}

// wordOff is the value that disables a setting.
const wordOff = "off"

// durationOrOff is like duration, for a setting that may be off. It returns zero for off.
func (p *problems) durationOrOff(name, value string) time.Duration {
	if value == wordOff {
		return 0
	}
	return p.duration(name, value)
}

// durationWithin parses a duration that is not a field of the broker, and checks its bounds.
func (p *problems) durationWithin(name, value string, low, high time.Duration) time.Duration {
	d, err := levels.ParseDuration(value)
	switch {
	case err != nil:
		p.refuse(name, value, "%w", err)
	case d < low || d > high:
		p.refuse(name, value, "want %s to %s", levels.FormatDuration(low), levels.FormatDuration(high))
	}
	return d
}

// parseSetting parses a setting with its own syntax.
func parseSetting[T any](p *problems, name, value string, parse func(string) (T, error)) T {
	v, err := parse(value)
	if err != nil {
		p.refuse(name, value, "%w", err)
	}
	return v
}

// number parses a whole number for a field of the broker, which checks the bounds. It returns refusedValue for zero and
// for an unparsable value.
func number(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil || n == 0 {
		return refusedValue
	}
	return n
}

// wordNone is the value for no limit.
const wordNone = "none"

// count parses a limit on messages. It returns zero for no limit.
func (p *problems) count(name, value string) int64 {
	if value == wordNone {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		p.refuse(name, value, "want a whole number from 1, or %s", wordNone)
	}
	return n
}

const wantBytes = "want bytes such as 500MB or 10GiB"

// bytes parses a number of bytes. A refusal has the given text.
func (p *problems) bytes(name, value, want string) int64 {
	n, err := humanize.ParseBytes(value)
	if err != nil || n < 1 || n > math.MaxInt64 {
		p.refuse(name, value, "%s", want)
	}
	return int64(n)
}

// bytesOrNone parses a limit on bytes. It returns zero for no limit.
func (p *problems) bytesOrNone(name, value string) int64 {
	if value == wordNone {
		return 0
	}
	return p.bytes(name, value, wantBytes+", or "+wordNone)
}

// oneOf refuses a value that is not allowed. It returns the value in both cases.
func (p *problems) oneOf(name, value string, allowed ...string) string {
	if !slices.Contains(allowed, value) {
		p.refuse(name, value, "want one of %s", strings.Join(allowed, ", "))
	}
	return value
}

// address checks host:port. Example is a valid address. An empty host means every interface, and port 0 means any free
// port.
func (p *problems) address(name, value, example string) (host string, port int) {
	host, text, err := net.SplitHostPort(value)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		p.refuse(name, value, "want host:port, such as %s, with a port from 0 to 65535", example)
	}
	return host, port
}
