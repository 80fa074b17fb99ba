package inspect

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"delaybroker/broker/deadletter"
)

// The properties by which a count groups dead letters.
const (
	ByCode   = "code"
	ByTarget = "target"
	ByReason = "reason"
)

// maxGroups is the maximum number of groups of a count, without the group of the remaining letters. It limits the
// memory: each letter may have its own target.
const maxGroups = 20_000

// LetterGroup describes the letters with equal properties.
type LetterGroup struct {
	Letters    int       `json:"letters"`
	Code       string    `json:"code,omitempty"`
	Target     string    `json:"target,omitempty"`
	Reason     string    `json:"reason,omitempty"` // the reason, with # in place of each number
	Oldest     time.Time `json:"oldest"`
	Newest     time.Time `json:"newest"`
	Number     uint64    `json:"number"`      // sequence of the newest letter
	LastReason string    `json:"last_reason"` // reason of the newest letter, unchanged
}

// LetterCount is the number of letters by group, the largest group first.
type LetterCount struct {
	Letters int            `json:"letters"`
	Groups  []*LetterGroup `json:"groups"`
}

// groupKey has the common properties of the letters in a group.
type groupKey struct{ code, target, reason string }

var numbers = regexp.MustCompile(`[0-9]+`)

func keyOf(l deadletter.Letter, by []string) (k groupKey) {
	if slices.Contains(by, ByCode) {
		k.code = string(l.Code)
	}
	if slices.Contains(by, ByTarget) {
		k.target = cmp.Or(l.Target, "-")
	}
	if slices.Contains(by, ByReason) {
		k.reason = numbers.ReplaceAllString(Reason(l), "#")
	}
	return k
}

// Count counts letters by some of ByCode, ByTarget and ByReason. It reads only the headers.
func (l *Letters) Count(
	ctx context.Context, filter deadletter.Filter, by []string, progress func(read, total uint64),
) (LetterCount, error) {
	groups := make(map[groupKey]*LetterGroup)
	count := LetterCount{Groups: []*LetterGroup{}}
	for letter, err := range l.List(ctx, deadletter.Query{Filter: filter, HeadersOnly: true, Progress: progress}) {
		if err != nil {
			return count, err
		}
		k := keyOf(letter, by)
		g := groups[k]
		if g == nil && len(groups) >= maxGroups {
			k = groupKey{reason: "all others"}
			g = groups[k]
		}
		if g == nil {
			g = &LetterGroup{Code: k.code, Target: k.target, Reason: k.reason, Oldest: letter.At.UTC()}
			groups[k] = g
			count.Groups = append(count.Groups, g)
		}
		count.Letters++
		g.Letters++
		g.Newest, g.Number, g.LastReason = letter.At.UTC(), letter.Sequence, Reason(letter)
	}
	slices.SortStableFunc(count.Groups, func(a, b *LetterGroup) int { return cmp.Compare(b.Letters, a.Letters) })
	return count, nil
}
