package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/deliver"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
)

const (
	// failingAfter is the minimum time between the first and the last failure of a reported target. A shorter failure may
	// be a restart of the consumer.
	failingAfter = time.Minute
	// maxRetrying is the maximum number of refused messages that doctor reads: their headers.
	maxRetrying = 10_000
	// With more than maxTargets failing targets, one finding describes all.
	maxTargets = 3
)

// checkTargets looks for targets that have been failing for failingAfter, whatever the reason.
func checkTargets(f Facts) []Finding {
	switch {
	case f.Infos == nil:
		return nil
	case f.retryErr != nil:
		return finding(Skipped, operatorAdvice, "the refused messages cannot be read: %v", f.retryErr)
	}
	failing := slices.DeleteFunc(slices.Clone(f.retrying.Groups), func(g *inspect.RetryGroup) bool {
		return g.State != inspect.Refused && g.State != inspect.Deferred || g.Until.Sub(g.Since) < failingAfter
	})
	if len(failing) == 0 {
		return finding(Fine, "", "no target is known to have been failing for %s", text.Span(failingAfter))
	}
	more := ""
	if f.retrying.NextPosition != "" {
		more = " or more"
	}
	if len(failing) > maxTargets {
		var messages uint64
		for _, g := range failing {
			messages += g.Messages
		}
		g := failing[0]
		return finding(Warn, "read the reasons: delaybroker retrying",
			"%d%s targets refuse %d%s messages, most: %s (%d for %s): %s", len(failing), more, messages, more,
			targetName(g), g.Messages, text.Span(g.Until.Sub(g.Since)), text.Printable(g.Reason, maxDetail))
	}
	var findings []Finding
	for _, g := range failing {
		findings = append(findings, finding(Warn, f.adviceFor(g),
			"%s has been failing for %s, with %d%s waiting, attempt %d of %d: %s", targetName(g),
			text.Span(g.Until.Sub(g.Since)), g.Messages, more, g.Attempts, g.Allowed, text.Printable(g.Reason, maxDetail))...)
	}
	return findings
}

// targetName returns the target of a group. A group without one has the messages of the targets beyond a limit.
func targetName(g *inspect.RetryGroup) string {
	if g.Target == "" {
		return "each of further targets"
	}
	return text.Printable(g.Target, maxDetail)
}

// adviceFor returns the advice for a failing target.
func (f Facts) adviceFor(g *inspect.RetryGroup) (advice string) {
	target := targetName(g)
	switch {
	case strings.HasPrefix(g.Reason, deliver.NobodyListens):
		return "start the consumer of " + target
	case strings.HasPrefix(g.Reason, deliver.NotAllowed):
		return "grant the broker's user permission to publish to " + target
	case strings.HasPrefix(g.Reason, deliver.UnknownListener):
		return "grant the broker's user permission to list streams, or send to " + target + " in mode core"
	case strings.HasPrefix(g.Reason, deliver.NoStream):
		for _, name := range slices.Sorted(maps.Keys(f.Infos)) {
			if message.FirstOverlap(f.Infos[name].Config.Subjects, []string{g.Target}) != "" {
				return "check the stream " + name + ", which does not acknowledge"
			}
		}
		return "create a stream for " + target
	}
	return fmt.Sprintf("correct the cause at %s, or pause it: delaybroker pause %s", target, target)
}
