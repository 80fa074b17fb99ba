package message

import (
	"strings"
	"time"
)

// A Refusal is one refused delivery.
type Refusal struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"` // empty if it is unknown
}

// maxRefusals is the maximum length of the text of the earlier refusals, in bytes. Without room, the oldest ones go.
const maxRefusals = 1 << 10

// RefusalLimit returns the number of refusals after which the message becomes a dead letter: that of the settings, or a
// smaller one that the client has set.
func (r Request) RefusalLimit(settings int) int {
	if r.MaxAttempts > 0 {
		return min(settings, r.MaxAttempts)
	}
	return settings
}

// AfterRefusal returns nil if the message gets another attempt, at the time next, after it was refused for the given
// number of times. Otherwise it returns the problem with which the message becomes a dead letter. Limit is the
// RefusalLimit, and reason that of the last refusal.
func (r Request) AfterRefusal(attempts, limit int, next time.Time, reason string) *Problem {
	switch {
	case attempts >= limit:
		return Problemf(Undelivered, "%s", reason)
	case !r.Expires.IsZero() && next.After(r.Expires):
		return Problemf(Expired, "refused %d times, and the next attempt would come after Delay-Expires %s; last error: %s",
			attempts, r.Expires.UTC().Format(time.RFC3339Nano), reason)
	}
	return nil
}

// Refusals returns the refusals of the message, the oldest first: the latest Attempts, or fewer.
func (r Request) Refusals() []Refusal {
	if r.Attempts == 0 {
		return nil
	}
	return append(parseRefusals(r.EarlierRefusals), Refusal{r.LastFailure.UTC(), r.LastError})
}

// parseRefusals parses the header Delay-Refusals: times and reasons, as in
//
//	2026-11-28T15:20:01.123Z nobody listens|2026-11-28T15:20:06.125Z|2026-11-28T15:20:36.130Z it is full
//
// A refusal without a reason has that of the refusal before it. A text that no broker writes is cut at its first error,
// because no decision depends on it.
func parseRefusals(text string) (all []Refusal) {
	reason := ""
	for part := range strings.SplitSeq(text, "|") {
		moment, why, _ := strings.Cut(part, " ")
		at, err := time.Parse(time.RFC3339Nano, moment)
		if err != nil {
			return all
		}
		if why != "" {
			reason = why
		}
		all = append(all, Refusal{at, reason})
	}
	return all
}

func formatRefusals(all []Refusal) string {
	for {
		text, before := "", ""
		for n, r := range all {
			if n > 0 {
				text += "|"
			}
			text += r.At.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)
			if reason := strings.ReplaceAll(r.Reason, "|", "/"); reason != before {
				text, before = text+" "+reason, reason
			}
		}
		if len(text) <= maxRefusals {
			return text
		}
		all = all[1:]
	}
}

func validRefusals(v string) bool { return oneLine(v, maxRefusals) == v }
