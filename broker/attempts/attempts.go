// Package attempts says how often the targets of a pattern may refuse a message, and how long it waits between.
//
// Both settings have rules before a default, as those for delivery modes have. Waits are names of levels, since a
// message waits for its next attempt in a stream that is read in order. So a doubling is written out into levels when
// it is read: to let messages wait in one stream for different times was rejected, as those behind a long wait would be
// late.
package attempts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// double stands between two waits.
const double = "x2"

// Limits are how often targets may refuse a message.
type Limits = message.Rules[int]

// ParseLimits reads "20", or rules before a default as in "shop.mail=5,20". The default is returned as it is written,
// and is empty if there is none.
func ParseLimits(s string) (rules Limits, otherwise string, err error) {
	for _, word := range message.Words(s) {
		pattern, text, isRule := strings.Cut(word, "=")
		switch n, bad := strconv.Atoi(text); {
		case isRule && bad != nil:
			return nil, "", fmt.Errorf("attempts %q: want pattern=number, as in shop.mail=5,20", word)
		case isRule:
			rules = append(rules, message.Rule[int]{Pattern: pattern, Value: n})
		case otherwise != "":
			return nil, "", fmt.Errorf("two defaults, %s and %s: keep one", otherwise, word)
		default:
			otherwise = word
		}
	}
	return rules, otherwise, nil
}

// Waits are how long messages for targets wait: after the first refusal as long as the shortest level, and so on; after
// the last, and all that follow, as long as the longest.
type Waits = message.Rules[levels.Ladder]

// ParseWaits reads "1s,5s,30s", or rules before a default as in "shop.mail=1s,1m,10m;1s,5s,30s". The waits of a rule
// may be separated by spaces too. An x2 between two waits doubles the first until the second is reached: "1s x2 10s" is
// "1s 2s 4s 8s 10s". The default has no levels if there is none.
func ParseWaits(s string) (rules Waits, otherwise levels.Ladder, err error) {
	var problems []error
	defaults := 0
	for part := range strings.SplitSeq(s, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		pattern, list, isRule := strings.Cut(part, "=")
		if !isRule {
			pattern, list = "", part
			defaults++
		}
		ladder, err := parseLadder(list)
		switch {
		case err != nil:
			problems = append(problems, err)
		case isRule:
			rules = append(rules, message.Rule[levels.Ladder]{Pattern: strings.TrimSpace(pattern), Value: ladder})
		default:
			otherwise = ladder
		}
	}
	if defaults > 1 {
		problems = append(problems, fmt.Errorf("%d defaults: keep one, and write the others as pattern=waits", defaults))
	}
	return rules, otherwise, errors.Join(problems...)
}

// parseLadder writes doublings out. Waits that become shorter are refused: a ladder would sort them silently.
func parseLadder(list string) (levels.Ladder, error) {
	words := message.Words(list)
	var names []string
	for at, word := range words {
		if word != double {
			names = append(names, word)
			continue
		}
		if at == 0 || at == len(words)-1 {
			return levels.Ladder{}, fmt.Errorf("%s: write it between two waits, as in 1s %s 10m", double, double)
		}
		from, bad := levels.ParseDuration(words[at-1])
		to, worse := levels.ParseDuration(words[at+1])
		if bad != nil || worse != nil || from < levels.MinLevel || from >= to || to > levels.MaxLevel {
			return levels.Ladder{}, fmt.Errorf("%s %s %s: want a wait of at least %s, and then a longer one of at most %s",
				words[at-1], double, words[at+1], levels.FormatDuration(levels.MinLevel), levels.FormatDuration(levels.MaxLevel))
		}
		for wait := 2 * from; wait < to; wait *= 2 {
			names = append(names, plain(wait))
		}
	}
	for at := 1; at < len(names); at++ {
		before, bad := levels.ParseDuration(names[at-1])
		after, worse := levels.ParseDuration(names[at])
		if bad == nil && worse == nil && after < before {
			return levels.Ladder{}, fmt.Errorf("%s after %s: write the waits from the shortest to the longest",
				names[at], names[at-1])
		}
	}
	return levels.Parse(strings.Join(names, " "))
}

// plain is a duration as the name of a level: one number and unit.
func plain(d time.Duration) string {
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if d%unit.of == 0 {
			return fmt.Sprint(int64(d/unit.of), unit.name)
		}
	}
	return fmt.Sprint(d.Milliseconds(), "ms")
}

// Lanes are the levels of all waits together. The error is that of two names for one length, or of too many.
func Lanes(rules Waits, otherwise levels.Ladder) (levels.Ladder, error) {
	names := strings.Fields(otherwise.String())
	known := make(map[string]bool)
	for _, name := range names {
		known[name] = true
	}
	for _, r := range rules {
		for _, l := range r.Value.Levels() {
			if !known[l.Name] {
				known[l.Name] = true
				names = append(names, l.Name)
			}
		}
	}
	return levels.Parse(strings.Join(names, " "))
}
