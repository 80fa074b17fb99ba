package main

import (
	"fmt"
	"time"

	"delaybroker/levels"
)

// This file reads the flags that several commands have.

// given returns the number of flags that are given.
func given(values ...string) (n int) {
	for _, v := range values {
		if v != "" {
			n++
		}
	}
	return n
}

// period reads --since and --until. Durations count back from now; an empty value is the zero time.
func period(since, until string, now time.Time) (from, to time.Time, err error) {
	if from, err = pastTime("--since", since, now); err != nil {
		return from, to, err
	}
	if to, err = pastTime("--until", until, now); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from, to, fmt.Errorf("%w: --since %s is not before --until %s, and nothing lies between",
			errUsage, since, until)
	}
	return from, to, nil
}

// zoned parses a time of a flag.
func zoned(flag, value string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return t, fmt.Errorf("%w: %s %q: want a time with a zone, such as 2026-12-24T18:00:00Z", errUsage, flag, value)
	}
	return t, nil
}

// pastTime parses a time in the past; an empty value is the zero time.
func pastTime(flag, value string, now time.Time) (time.Time, error) {
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
