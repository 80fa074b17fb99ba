package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

// A parsedFlag parses its text in Set, so that pflag adds the name of the flag to an error.
type parsedFlag[T any] struct {
	value *T     // receives the value
	kind  string // type of the value, in the help
	text  string
	parse func(text string) (T, error)
}

func (c *parsedFlag[T]) String() string { return c.text }
func (c *parsedFlag[T]) Type() string   { return c.kind }

func (c *parsedFlag[T]) Set(text string) error {
	v, err := c.parse(text)
	if err == nil {
		*c.value, c.text = v, text
	}
	return err
}

var (
	errPattern = errors.New("want tokens separated by dots; * for one token, > for the rest")
	errMoment  = errors.New("want a time with a zone, such as 2026-12-24T18:00:00Z")
)

// addFlag adds a flag whose text parse converts to the value.
func addFlag[T any](f *pflag.FlagSet, value *T, name, usage string, parse func(text string) (T, error)) {
	f.Var(&parsedFlag[T]{value: value, kind: "string", parse: parse}, name, usage)
}

// addPatternFlag adds --target, a pattern of targets.
func addPatternFlag(f *pflag.FlagSet, value *string) {
	const usage = "only for this target, or for a pattern of targets, as in 'orders.>'"
	addFlag(f, value, "target", usage, func(text string) (string, error) {
		if !message.ValidPattern(text) {
			return "", errPattern
		}
		return text, nil
	})
}

func addTimeFlag(f *pflag.FlagSet, value *time.Time, name, usage string) {
	addFlag(f, value, name, usage, parseMoment)
}

func parseMoment(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		err = errMoment
	}
	return t, err
}

// noBound is the upper bound of a flag that has none.
const noBound = math.MaxInt

// addCountFlag adds a flag for a whole number from low to high, both included. Without the flag, the number is
// fallback.
func addCountFlag[N int | uint64](
	f *pflag.FlagSet, value *N, name, short string, fallback, low, high int, usage string,
) {
	*value = N(fallback)
	f.VarP(&parsedFlag[N]{value: value, kind: "int", text: strconv.Itoa(fallback), parse: func(text string) (N, error) {
		n, err := strconv.Atoi(text)
		switch {
		case err == nil && n >= low && n <= high:
			return N(n), nil
		case high == noBound:
			return 0, fmt.Errorf("want %d or more", low)
		}
		return 0, fmt.Errorf("want %d to %d", low, high)
	}}, name, short, usage)
}

// addListFlag adds a flag whose value is a list of choices, separated by commas. If the flag is repeated, the lists are
// joined.
func addListFlag[T ~string](c *cobra.Command, values *[]T, name string, choices []T, usage string) {
	c.Flags().Var(&parsedFlag[[]T]{value: values, kind: "strings", parse: func(text string) ([]T, error) {
		words := *values
		for word := range strings.SplitSeq(text, ",") {
			if !slices.Contains(choices, T(word)) {
				return words, fmt.Errorf("want some of %s", strings.Join(terminal.Strings(choices), ", "))
			}
			words = append(words, T(word))
		}
		return words, nil
	}}, name, usage)
	addCompletion(c, name, terminal.Strings(choices)...)
}

// countGiven returns the number of values that are not empty.
func countGiven(values ...string) (n int) {
	for _, v := range values {
		if v != "" {
			n++
		}
	}
	return n
}

// parsePeriod parses the values of --since and --until: see parsePastTime.
func parsePeriod(since, until string, now time.Time) (start, end time.Time, err error) {
	if start, err = parsePastTime("--since", since, now); err != nil {
		return start, end, err
	}
	if end, err = parsePastTime("--until", until, now); err != nil {
		return start, end, err
	}
	if !start.IsZero() && !end.IsZero() && !start.Before(end) {
		return start, end, fmt.Errorf("%w: --since %s is not before --until %s", errUsage, since, until)
	}
	return start, end, nil
}

// parseTime parses the value of a flag as a time with a zone.
func parseTime(flag, value string) (time.Time, error) {
	t, err := parseMoment(value)
	if err != nil {
		err = fmt.Errorf("%w: %s %q: %w", errUsage, flag, value, err)
	}
	return t, err
}

// parsePastTime parses a time, or a duration that counts back from now. For an empty value it returns the zero time.
func parsePastTime(flag, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if ago, err := levels.ParseDuration(value); err == nil {
		return now.Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return t, fmt.Errorf("%w: %s %q: want a time with a zone (2026-11-20T10:00:00Z), or a duration (2h)",
			errUsage, flag, value)
	}
	return t, nil
}
