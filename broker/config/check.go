package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// check reports all problems of a configuration whose defaults are filled in.
func (c Config) check() error {
	var all FieldErrors
	c.checkIdentity(&all)
	c.checkRanges(&all)
	c.checkRules(&all)
	if len(all) == 0 {
		return nil
	}
	return all
}

// checkIdentity checks the names of the broker, its subjects and its server, and its secrets.
func (c Config) checkIdentity(all *FieldErrors) {
	refuse := all.refuse
	if _, err := message.NewNames(c.Prefix); err != nil {
		refuse("Prefix", c.Prefix, "%v", err)
	}
	for i, secret := range c.Secrets {
		if len(secret) < message.MinSecret {
			refuse("Secrets", "",
				"number %d of %d has %d bytes; want at least %d: take the output of openssl rand -hex 16",
				i+1, len(c.Secrets), len(secret), message.MinSecret)
		}
	}
	if c.MaxOwners > 0 && c.Leaser != nil {
		refuse("MaxOwners", c.MaxOwners, "set together with Leaser; leave one of them out")
	}
	if len(c.Instance) > maxInstance {
		refuse("Instance", c.Instance, "want at most %d bytes", maxInstance)
	}
	if len(c.Place.Name) > maxPlace {
		refuse("Place", fmt.Sprintf("%.60s…", c.Place.Name), "want at most %d bytes", maxPlace)
	}
	switch {
	case strings.ContainsAny(c.JSDomain, ".*> \t\r\n"):
		refuse("JSDomain", c.JSDomain, "want one token: no dots, wildcards or spaces")
	case c.JSDomain != "" && c.APIPrefix != APIPrefix(c.JSDomain):
		refuse("JSDomain", c.JSDomain, "set together with APIPrefix %q; leave one of them out", c.APIPrefix)
	}
}

// checkReplyPrefixes refuses prefixes below which messages are requests.
func (c Config) checkReplyPrefixes(all *FieldErrors) {
	var roots []string
	if names, err := message.NewNames(c.Prefix); err == nil {
		roots = names.Roots()
	}
	for _, prefix := range c.ReplyPrefixes {
		first, _, _ := strings.Cut(prefix, ".")
		if !message.ValidPattern(prefix) || strings.ContainsAny(prefix, "*>") || first[0] == '$' ||
			slices.Contains(roots, first) {
			all.refuse("ReplyPrefixes", prefix,
				"reply prefix %q: want an inbox prefix such as _INBOX_orders, without wildcards, and nothing below $ or the "+
					"broker's own subjects", prefix)
		}
	}
}

// checkSchedules checks the patterns of schedules, and that the stream of timers, which keeps them, is on.
func (c Config) checkSchedules(all *FieldErrors) {
	if len(c.Schedules) == 0 {
		return
	}
	names, _ := message.NewNames(c.Prefix) // checkIdentity reports a bad prefix
	if err := c.Schedules.Check(names.Roots()); err != nil {
		all.refuse("Schedules", "", "%v", err)
	}
	if !c.Timers {
		all.refuse("Schedules", "", "schedules are kept in the stream of timers: leave Timers on").Other = "Timers"
	}
}

// checkRanges checks the fields that have a minimum and a maximum.
func (c Config) checkRanges(all *FieldErrors) {
	if c.HoldBytes < MinHoldBytes {
		all.refuse("HoldBytes", c.HoldBytes, "want at least %d", MinHoldBytes)
	}
	if c.MaxPending < 0 {
		all.refuse("MaxPending", c.MaxPending, "want a whole number from 1, or 0 for no bound")
	}
	if c.MaxPendingBytes < 0 {
		all.refuse("MaxPendingBytes", c.MaxPendingBytes, "want a whole number from 1, or 0 for no bound")
	}
	for _, f := range []struct {
		field     string
		value     int
		low, high int
		orZero    bool // zero is allowed, and has a meaning of its own
	}{
		{"Attempts", c.Attempts, 1, maxAttempts, false},
		{"Replicas", c.Replicas, 1, MaxReplicas, true},
		{"MaxOwners", c.MaxOwners, 1, MaxOwners, true},
		{"HoldMessages", c.HoldMessages, minHoldMessages, maxHoldMessages, false},
	} {
		if (f.value < f.low || f.value > f.high) && !(f.orZero && f.value == 0) {
			all.refuse(f.field, f.value, "want a whole number from %d to %d", f.low, f.high)
		}
	}
	for _, f := range []struct {
		field            string
		value, low, high time.Duration
		off              bool // the feature is off, so the bounds do not apply
	}{
		{"DedupWindow", c.DedupWindow, minDedupWindow, maxDedupWindow, false},
		{"MaxDelay", c.MaxDelay, minMaxDelay, maxMaxDelay, false},
		{"Slack", c.Slack, minSlack, maxSlack, c.Slack == 0},
		{"ReplyTimeout", c.ReplyTimeout, minReplyTimeout, AnswersWithin(maxShutdownGrace), false},
		{"ShutdownGrace", c.ShutdownGrace, minShutdownGrace, maxShutdownGrace, false},
		{"TimerHistory", c.TimerHistory, minTimerHistory, maxTimerHistory, c.TimerHistory < 0},
		{"Journal", c.Journal, minJournal, maxMaxDelay, c.Journal == 0},
	} {
		if !f.off && (f.value < f.low || f.value > f.high) {
			all.refuse(f.field, f.value, "want %s to %s", levels.FormatDuration(f.low), levels.FormatDuration(f.high))
		}
	}
	if c.JournalBytes < minJournalBytes {
		all.refuse("JournalBytes", c.JournalBytes, "want at least %d", minJournalBytes)
	}
	longest := AnswersWithin(c.ShutdownGrace)
	if !all.Have("ReplyTimeout") && !all.Have("ShutdownGrace") && c.ReplyTimeout > longest {
		all.refuse("ReplyTimeout", c.ReplyTimeout,
			"want at most %s, three quarters of ShutdownGrace, or a clean stop would repeat what is being answered",
			levels.FormatDuration(longest)).Other = "ShutdownGrace"
	}
}

// checkRules reports rules by target that match nothing, or whose values are out of bounds.
func (c Config) checkRules(all *FieldErrors) {
	for _, f := range []struct {
		field    string
		patterns []string
	}{
		{"Targets", c.Targets}, {"HeaderTargets", c.HeaderTargets},
		{"Deliver", c.Deliver.Rules.Patterns()}, {"Rates", message.Rules[int](c.Rates).Patterns()},
		{"RatesByKey", message.Rules[int](c.RatesByKey).Patterns()}, {"AttemptRules", c.AttemptRules.Patterns()},
		{"RetryRules", c.RetryRules.Patterns()}, {"RetryJitter", c.RetryJitter.Patterns()},
	} {
		for _, pattern := range f.patterns {
			if !message.ValidPattern(pattern) {
				all.refuse(f.field, pattern,
					"target pattern %q: tokens separated by dots; * for one token, > for the rest", pattern)
			}
		}
	}
	if err := c.Deliver.Validate(); err != nil {
		all.refuse("Deliver", "", "%v", err)
	}
	if err := c.Rates.Validate(); err != nil {
		all.refuse("Rates", "", "%v", err)
	}
	if err := c.RatesByKey.Validate(); err != nil {
		all.refuse("RatesByKey", "", "%v", err)
	}
	c.checkReplyPrefixes(all)
	c.checkSchedules(all)
	for _, r := range c.AttemptRules {
		if r.Value < 1 || r.Value > maxAttempts {
			all.refuse("AttemptRules", fmt.Sprintf("%s=%d", r.Pattern, r.Value),
				"attempts %d for %s: want a whole number from 1 to %d", r.Value, r.Pattern, maxAttempts)
		}
	}
	for _, r := range c.RetryJitter {
		if r.Value < 0 || r.Value > maxJitter {
			all.refuse("RetryJitter", fmt.Sprintf("%s=%d", r.Pattern, r.Value),
				"jitter %d for %s: want a percentage from 0 to %d", r.Value, r.Pattern, maxJitter)
		}
	}
	for _, r := range c.RetryRules {
		if len(r.Value.Levels()) == 0 {
			all.refuse("RetryRules", r.Pattern, "no waits for %s: want one at least", r.Pattern)
		}
	}
	if _, err := RetryLanes(c.RetryRules, c.RetryLadder); err != nil {
		all.refuse("RetryRules", "", "the waits of all targets together are the retry lanes: %v", err)
	}
}
