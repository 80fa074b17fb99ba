package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/levels"
)

// check returns all problems of a configuration. The defaults must be filled in.
func (c Config) check() error {
	var errs FieldErrors
	c.checkIdentity(&errs)
	c.checkRanges(&errs)
	c.checkRules(&errs)
	if len(errs) == 0 {
		return nil
	}
	return errs
}

func (c Config) checkIdentity(errs *FieldErrors) {
	refuse := errs.refuse
	if _, err := message.NewNames(c.Prefix); err != nil {
		refuse("Prefix", c.Prefix, "%v", err)
	}
	for i, secret := range c.Secrets {
		if len(secret) < message.MinSecret {
			refuse("Secrets", "",
				"secret %d of %d has %d bytes, want at least %d: use the output of openssl rand -hex 16",
				i+1, len(c.Secrets), len(secret), message.MinSecret)
		}
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
		refuse("JSDomain", c.JSDomain, "set together with APIPrefix %q; remove one of them", c.APIPrefix)
	}
}

// checkReplyPrefixes refuses invalid prefixes, and prefixes below which a message could be a request.
func (c Config) checkReplyPrefixes(errs *FieldErrors) {
	names, _ := message.NewNames(c.Prefix) // checkIdentity reports an invalid prefix
	for _, prefix := range c.ReplyPrefixes {
		first, _, _ := strings.Cut(prefix, ".")
		if !message.ValidPattern(prefix) || strings.ContainsAny(prefix, "*>") || first[0] == '$' ||
			slices.Contains(names.Roots(), first) {
			errs.refuse("ReplyPrefixes", prefix,
				"reply prefix %q: want an inbox prefix such as _INBOX_orders, without wildcards, and nothing below $ or the "+
					"broker's own subjects", prefix)
		}
	}
}

// checkSchedules checks the patterns of schedules. It also requires the stream of timers, which stores the schedules.
func (c Config) checkSchedules(errs *FieldErrors) {
	if len(c.Schedules) == 0 {
		return
	}
	names, _ := message.NewNames(c.Prefix) // checkIdentity reports an invalid prefix
	if err := c.Schedules.Check(names.Roots()); err != nil {
		errs.refuse("Schedules", "", "%v", err)
	}
	if !c.Timers {
		errs.refuse("Schedules", "", "schedules need the stream of timers: switch Timers on").OtherField = "Timers"
	}
}

func (c Config) checkRanges(errs *FieldErrors) {
	if c.HoldBytes < MinHoldBytes {
		errs.refuse("HoldBytes", c.HoldBytes, "want at least %d bytes", MinHoldBytes)
	}
	if c.MaxPending < 0 {
		errs.refuse("MaxPending", c.MaxPending, "want a whole number from 1, or 0 for no bound")
	}
	switch {
	case c.Storage < 0, c.Storage > 0 && c.Storage < minStorage:
		errs.refuse("Storage", c.Storage, "want at least %d, or 0 for no bound", minStorage)
	case c.Storage > 0 && c.MaxPendingBytes > 0:
		errs.refuse("Storage", c.Storage, "it excludes MaxPendingBytes: remove one of the two")
	}
	if c.MaxPendingBytes < 0 {
		errs.refuse("MaxPendingBytes", c.MaxPendingBytes, "want a whole number from 1, or 0 for no bound")
	}
	for _, f := range []struct {
		field     string
		value     int
		low, high int
		orZero    bool // zero is allowed, with a special meaning
	}{
		{"Attempts", c.Attempts, 1, maxAttempts, false},
		{"Replicas", c.Replicas, 1, MaxReplicas, true},
		{"HoldMessages", c.HoldMessages, minHoldMessages, maxHoldMessages, false},
	} {
		if (f.value < f.low || f.value > f.high) && !(f.orZero && f.value == 0) {
			errs.refuse(f.field, f.value, "want a whole number from %d to %d", f.low, f.high)
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
		{"ReplyTimeout", c.ReplyTimeout, minReplyTimeout, AnswerTimeout(maxShutdownGrace), false},
		{"ShutdownGrace", c.ShutdownGrace, minShutdownGrace, maxShutdownGrace, false},
		{"TimerHistory", c.TimerHistory, minTimerHistory, maxTimerHistory, c.TimerHistory < 0},
		{"Journal", c.Journal, minJournal, maxMaxDelay, c.Journal == 0},
	} {
		if !f.off && (f.value < f.low || f.value > f.high) {
			errs.refuse(f.field, f.value, "want %s to %s", levels.FormatDuration(f.low), levels.FormatDuration(f.high))
		}
	}
	if c.JournalBytes < minJournalBytes {
		errs.refuse("JournalBytes", c.JournalBytes, "want at least %d bytes", minJournalBytes)
	}
	maxTimeout := AnswerTimeout(c.ShutdownGrace)
	if !errs.Has("ReplyTimeout") && !errs.Has("ShutdownGrace") && c.ReplyTimeout > maxTimeout {
		errs.refuse("ReplyTimeout", c.ReplyTimeout,
			"want at most %s, three quarters of ShutdownGrace: a clean stop must wait for replies",
			levels.FormatDuration(maxTimeout)).OtherField = "ShutdownGrace"
	}
}

// checkRules checks the rules by target, the reply prefixes and the schedules.
func (c Config) checkRules(errs *FieldErrors) {
	for _, f := range []struct {
		field    string
		patterns []string
	}{
		{"Targets", c.Targets}, {"HeaderTargets", c.HeaderTargets},
		{"Deliver", c.Deliver.Rules.Patterns()}, {"Rates", message.Rules[int](c.Rates).Patterns()},
		{"RatesByKey", message.Rules[int](c.RatesByKey).Patterns()}, {"AttemptRules", c.AttemptRules.Patterns()},
		{"InProgress", message.Rules[int](c.InProgress).Patterns()},
		{"InProgressByKey", message.Rules[int](c.InProgressByKey).Patterns()},
		{"RetryRules", c.RetryRules.Patterns()}, {"RetryJitter", c.RetryJitter.Patterns()},
	} {
		for _, pattern := range f.patterns {
			if !message.ValidPattern(pattern) {
				errs.refuse(f.field, pattern,
					"target pattern %q: tokens separated by dots; * for one token, > for the rest", pattern)
			}
		}
	}
	for _, f := range []struct {
		field string
		err   error
	}{
		{"Deliver", c.Deliver.Validate()}, {"Rates", c.Rates.Validate()}, {"RatesByKey", c.RatesByKey.Validate()},
		{"InProgress", c.InProgress.Validate()}, {"InProgressByKey", c.InProgressByKey.Validate()},
	} {
		if f.err != nil {
			errs.refuse(f.field, "", "%v", f.err)
		}
	}
	c.checkReplyPrefixes(errs)
	c.checkSchedules(errs)
	for _, r := range c.AttemptRules {
		if r.Value < 1 || r.Value > maxAttempts {
			errs.refuse("AttemptRules", fmt.Sprintf("%s=%d", r.Pattern, r.Value),
				"attempts %d for %s: want a whole number from 1 to %d", r.Value, r.Pattern, maxAttempts)
		}
	}
	for _, r := range c.RetryJitter {
		if r.Value < 0 || r.Value > maxJitter {
			errs.refuse("RetryJitter", fmt.Sprintf("%s=%d", r.Pattern, r.Value),
				"jitter %d for %s: want a percentage from 0 to %d", r.Value, r.Pattern, maxJitter)
		}
	}
	for _, r := range c.RetryRules {
		if len(r.Value.Levels()) == 0 {
			errs.refuse("RetryRules", r.Pattern, "no waits for %s: want at least one", r.Pattern)
		}
	}
	if _, err := RetryLanes(c.RetryRules, c.RetryLadder); err != nil {
		errs.refuse("RetryRules", "", "no retry lanes for the waits of all targets together: %v", err)
	}
}
