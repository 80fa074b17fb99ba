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

// maxGroups limits the memory of a count: each letter may have its own target. The remaining letters form one group.
const maxGroups = 20_000

// LetterGroup describes the letters with equal properties.
type LetterGroup struct {
	Letters    int       `json:"letters"`
	Code       string    `json:"code,omitempty"`
	Target     string    `json:"target,omitempty"`
	Reason     string    `json:"reason,omitempty"` // with # for each number
	Oldest     time.Time `json:"oldest"`
	Newest     time.Time `json:"newest"`
	Number     uint64    `json:"number"`      // of the newest letter
	LastReason string    `json:"last_reason"` // of the newest letter, with its numbers
}

// LetterCount is the number of letters by group, the largest group first.
type LetterCount struct {
	Letters int            `json:"letters"`
	Groups  []*LetterGroup `json:"groups"`
}

// kind has the properties that all letters of a group have in common.
type kind struct{ code, target, reason string }

var numbers = regexp.MustCompile(`[0-9]+`)

// kindOf returns the properties of a letter that are listed in by.
func kindOf(l deadletter.Letter, by []string) (k kind) {
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
	groups := make(map[kind]*LetterGroup)
	count := LetterCount{Groups: []*LetterGroup{}}
	for letter, err := range l.List(ctx, deadletter.Query{Filter: filter, HeadersOnly: true, Progress: progress}) {
		if err != nil {
			return count, err
		}
		k := kindOf(letter, by)
		g := groups[k]
		if g == nil && len(groups) >= maxGroups {
			k = kind{reason: "all others"}
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
