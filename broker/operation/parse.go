package operation

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"delaybroker/broker/message"
)

// This file has the parsers of the texts that operations and the other commands of the program have in common.

// NoBound is the upper bound of a number that has none.
const NoBound = math.MaxInt

// ParseCount returns a parser of whole numbers from low to high, both included.
func ParseCount[N int | uint64](low, high int) func(text string) (N, error) {
	return func(text string) (N, error) {
		n, err := strconv.Atoi(text)
		switch {
		case err == nil && n >= low && n <= high:
			return N(n), nil
		case high == NoBound:
			return 0, fmt.Errorf("want %d or more", low)
		}
		return 0, fmt.Errorf("want %d to %d", low, high)
	}
}

// ParsePattern checks a pattern of targets.
func ParsePattern(text string) (string, error) {
	if !message.ValidPattern(text) {
		return "", errors.New("want tokens separated by dots; * for one token, > for the rest")
	}
	return text, nil
}

// ParseMoment parses a time with a zone.
func ParseMoment(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		err = errors.New("want a time with a zone, such as 2026-12-24T18:00:00Z")
	}
	return t, err
}
