package config

import (
	"errors"
	"fmt"
	"slices"
)

// ErrConfig is returned if a setting is invalid: see [FieldErrors].
var ErrConfig = errors.New("configuration")

// FieldErrors are all problems of a configuration. Config.Complete returns them. They wrap ErrConfig.
type FieldErrors []FieldError

// FieldError is a field of a Config with an invalid value.
type FieldError struct {
	Field      string // its name in Config
	Value      string // empty for a secret; may be empty if Problem suffices
	Problem    string // the problem, with the bound: "want 1s to 1d"
	OtherField string // a second field that Problem names; empty if there is none
}

func (e FieldError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%v: %s: %s", ErrConfig, e.Field, e.Problem)
	}
	return fmt.Sprintf("%v: %s %q: %s", ErrConfig, e.Field, e.Value, e.Problem)
}

// Unwrap returns ErrConfig.
func (e FieldError) Unwrap() error { return ErrConfig }

func (errs FieldErrors) Error() string { return errors.Join(errs.Unwrap()...).Error() }

// Unwrap returns each error, for errors.Is and errors.As.
func (errs FieldErrors) Unwrap() []error {
	wrapped := make([]error, len(errs))
	for i, e := range errs {
		wrapped[i] = e
	}
	return wrapped
}

// Has reports whether there is a problem with a field.
func (errs FieldErrors) Has(field string) bool {
	return slices.ContainsFunc(errs, func(e FieldError) bool { return e.Field == field })
}

// refuse adds a problem with a field. The pointer that it returns is valid until the next call.
func (errs *FieldErrors) refuse(field string, value any, format string, args ...any) *FieldError {
	*errs = append(*errs, FieldError{Field: field, Value: fmt.Sprint(value), Problem: fmt.Sprintf(format, args...)})
	return &(*errs)[len(*errs)-1]
}
