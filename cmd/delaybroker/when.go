package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// when is what a person says about the time of delivery: one of the three.
type when struct {
	in    string // a duration
	at    string // RFC 3339
	level string
}

// subject is where to publish for a delivery to target. Now decides only what is past.
func (w when) subject(names message.Names, target string, now time.Time) (string, error) {
	switch {
	case w.level != "":
		return names.Bare(w.level) + "." + target, nil
	case w.in != "":
		if _, err := levels.ParseDuration(w.in); err != nil {
			return "", fmt.Errorf("%w: --in: %w", errUsage, err)
		}
		// The plain ones may be levels, which saves a hop.
		if slices.Contains(levels.Whole(), w.in) {
			return names.Bare(w.in) + "." + target, nil
		}
		return fill(names.InFilter(), w.in, target), nil
	}
	t, err := time.Parse(time.RFC3339Nano, w.at)
	if err != nil {
		return "", fmt.Errorf("%w: --at %q: want a time with a zone,"+
			" such as 2026-12-24T18:00:00Z or 2026-12-24T19:00:00.250+01:00", errUsage, w.at)
	}
	return fill(names.AtFilter(), timeToken(t, now), target), nil
}

// past reports how long ago the time was that --at names.
func (w when) past(now time.Time) (ago time.Duration, ok bool) {
	t, err := time.Parse(time.RFC3339Nano, w.at)
	return now.Sub(t), err == nil && t.Before(now)
}

// fill makes a subject of the filter of its form, "delayin.*.>".
func fill(filter, token, target string) string {
	return strings.TrimSuffix(filter, "*.>") + token + "." + target
}

// timeToken is t as one token of a subject, which has no room for a fraction. It is rounded up to a millisecond. The
// header Delay-Until could carry the rest, but not for a time that is about to pass: that would be a dead letter when
// the server's clock is ahead of ours.
func timeToken(t, now time.Time) string {
	up := t.Truncate(time.Millisecond)
	if up.Before(t) {
		up = up.Add(time.Millisecond)
	}
	// Small numbers are seconds to the broker, so the past is not written in milliseconds.
	if up.Equal(up.Truncate(time.Second)) || up.Before(now) {
		return up.UTC().Format("2006-01-02T15:04:05Z")
	}
	return strconv.FormatInt(up.UnixMilli(), 10)
}
