package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrConfig is returned for a setting out of bounds: see [FieldErrors]. Correct the setting.
var ErrConfig = errors.New("configuration")

// FieldErrors are returned by Config.Complete and Config.Validate: everything that is wrong with a configuration. They
// wrap ErrConfig.
type FieldErrors []FieldError

// FieldError is one field of a Config with a value that cannot be used.
type FieldError struct {
	Field   string // its name in Config
	Value   string // empty for a secret, and where Problem shows it
	Problem string // what is wrong, with the bound: "want 1s to 1d"
	Other   string // a second field that Problem names; empty when it names none
}

func (e FieldError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%v: %s: %s", ErrConfig, e.Field, e.Problem)
	}
	return fmt.Sprintf("%v: %s %q: %s", ErrConfig, e.Field, e.Value, e.Problem)
}

// Unwrap makes each an ErrConfig.
func (e FieldError) Unwrap() error { return ErrConfig }

func (all FieldErrors) Error() string {
	lines := make([]string, len(all))
	for i, e := range all {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each to errors.Is and errors.As.
func (all FieldErrors) Unwrap() []error {
	each := make([]error, len(all))
	for i, e := range all {
		each[i] = e
	}
	return each
}

// Have reports whether something is wrong with a field.
func (all FieldErrors) Have(field string) bool {
	return slices.ContainsFunc(all, func(e FieldError) bool { return e.Field == field })
}

// refuse adds what is wrong with a field. It returns what it has added, until more is.
func (all *FieldErrors) refuse(field string, value any, format string, args ...any) *FieldError {
	*all = append(*all, FieldError{Field: field, Value: fmt.Sprint(value), Problem: fmt.Sprintf(format, args...)})
	return &(*all)[len(*all)-1]
}
