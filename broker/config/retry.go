package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// maxJitter is the maximum jitter, in percent of the wait.
const maxJitter = 100

// doubling is the token between two waits. The parser inserts the repeated doubles of the first wait that are shorter
// than the second.
const doubling = "x2"

// RetryLimits are the numbers of refusals after which a message becomes a dead letter, by target pattern.
type RetryLimits = message.Rules[int]

// ParseRetryLimits parses a default such as "20", or rules with an optional default, such as "shop.mail=5,20". It
// returns the default as text, or "" if there is none.
func ParseRetryLimits(s string) (rules RetryLimits, fallback string, err error) {
	for _, word := range message.SplitList(s) {
		pattern, text, isRule := strings.Cut(word, "=")
		switch n, err := strconv.Atoi(text); {
		case isRule && err != nil:
			return nil, "", fmt.Errorf("attempts %q: want pattern=number, such as shop.mail=5,20", word)
		case isRule:
			rules = append(rules, message.Rule[int]{Pattern: pattern, Value: n})
		case fallback != "":
			return nil, "", fmt.Errorf("two defaults, %s and %s: keep one", fallback, word)
		default:
			fallback = word
		}
	}
	return rules, fallback, nil
}

// RetryWaits are the waits between delivery attempts, by target pattern: see Config.RetryLadder.
type RetryWaits = message.Rules[levels.Ladder]

// RetryJitter has the maximum extensions of a target's waits in percent, by target pattern.
type RetryJitter = message.Rules[int]

// ParseRetryWaits parses a default such as "1s,5s,30s", or rules with an optional default, such as
// "shop.mail=1s,1m,10m;1s,5s,30s". Spaces may also separate the waits of a rule. An x2 between two waits stands for the
// repeated doubles of the first that are shorter than the second: "1s x2 10s" is "1s 2s 4s 8s 10s". A percentage after
// the waits is their jitter, as in "1s x2 10s ~20%". If there is no default, the returned ladder has no levels.
func ParseRetryWaits(s string) (rules RetryWaits, fallback levels.Ladder, jitter RetryJitter, err error) {
	var problems []error
	defaults, defaultJitter := 0, 0
	for part := range strings.SplitSeq(s, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		pattern, list, isRule := strings.Cut(part, "=")
		if !isRule {
			pattern, list = "", part
			defaults++
		}
		pattern = strings.TrimSpace(pattern)
		list, percent, jitterErr := parseJitter(list)
		ladder, err := parseLadder(list)
		switch err = errors.Join(jitterErr, err); {
		case err != nil:
			problems = append(problems, err)
		case isRule:
			rules = append(rules, message.Rule[levels.Ladder]{Pattern: pattern, Value: ladder})
			jitter = append(jitter, message.Rule[int]{Pattern: pattern, Value: percent})
		default:
			fallback, defaultJitter = ladder, percent
		}
	}
	if defaults > 1 {
		problems = append(problems, fmt.Errorf("%d defaults: keep one, and write the others as pattern=waits", defaults))
	}
	jitter = append(jitter, message.Rule[int]{Pattern: ">", Value: defaultJitter})
	if !slices.ContainsFunc(jitter, func(r message.Rule[int]) bool { return r.Value > 0 }) {
		jitter = nil
	}
	return rules, fallback, jitter, errors.Join(problems...)
}

// parseJitter returns the waits and the percentage after them. The percentage is zero if there is none.
func parseJitter(list string) (waits string, percent int, err error) {
	waits, text, given := strings.Cut(list, "~")
	if !given {
		return list, 0, nil
	}
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	percent, err = strconv.Atoi(number)
	if !ok || err != nil || percent < 1 || percent > maxJitter {
		return waits, 0, fmt.Errorf("~%s: want a percentage from ~1%% to ~%d%% after the waits, such as 1s x2 1m ~20%%",
			strings.TrimSpace(text), maxJitter)
	}
	return waits, percent, nil
}

// parseLadder expands doublings. It refuses a wait that is shorter than the previous wait, because levels.Parse would
// sort the waits silently.
func parseLadder(list string) (levels.Ladder, error) {
	words := message.SplitList(list)
	var names []string
	for i, word := range words {
		if word != doubling {
			names = append(names, word)
			continue
		}
		if i == 0 || i == len(words)-1 {
			return levels.Ladder{}, fmt.Errorf("%s: want it between two waits, as in 1s %s 10m", doubling, doubling)
		}
		low, lowErr := levels.ParseDuration(words[i-1])
		high, highErr := levels.ParseDuration(words[i+1])
		if lowErr != nil || highErr != nil || low < levels.MinLevel || low >= high || high > levels.MaxLevel {
			return levels.Ladder{}, fmt.Errorf("%s %s %s: want a wait of at least %s, then a longer one of at most %s",
				words[i-1], doubling, words[i+1], levels.FormatDuration(levels.MinLevel), levels.FormatDuration(levels.MaxLevel))
		}
		for wait := 2 * low; wait < high; wait *= 2 {
			names = append(names, levelName(wait))
		}
	}
	for i := 1; i < len(names); i++ {
		previous, previousErr := levels.ParseDuration(names[i-1])
		next, nextErr := levels.ParseDuration(names[i])
		if previousErr == nil && nextErr == nil && next < previous {
			return levels.Ladder{}, fmt.Errorf("%s after %s: want the waits from the shortest to the longest",
				names[i], names[i-1])
		}
	}
	return levels.Parse(strings.Join(names, " "))
}

// levelName formats a duration as the name of a level: one number and one unit.
func levelName(d time.Duration) string {
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if d%unit.length == 0 {
			return fmt.Sprint(int64(d/unit.length), unit.name)
		}
	}
	return fmt.Sprint(d.Milliseconds(), "ms")
}

// RetryLanes returns the retry lanes for all waits, each lane once. It returns an error if two names have the same
// duration, such as 60s and 1m, or if there are too many lanes.
func RetryLanes(rules RetryWaits, fallback levels.Ladder) (levels.Ladder, error) {
	names := strings.Fields(fallback.String())
	for _, r := range rules {
		for _, l := range r.Value.Levels() {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	return levels.Parse(strings.Join(names, " "))
}
