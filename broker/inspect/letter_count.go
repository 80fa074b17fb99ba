package inspect

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"delaybroker/broker/deadletter"
)

// What dead letters are counted by.
const (
	ByCode   = "code"
	ByTarget = "target"
	ByReason = "reason"
)

// mostGroups bounds the memory of a count: each letter may have a target of its own. Further groups are counted as one.
const mostGroups = 20_000

// LetterGroup is the letters that are alike.
type LetterGroup struct {
	Letters int       `json:"letters"`
	Code    string    `json:"code,omitempty"`
	Target  string    `json:"target,omitempty"`
	Reason  string    `json:"reason,omitempty"` // with # for every number, since those differ
	Oldest  time.Time `json:"oldest"`
	Newest  time.Time `json:"newest"`
	Number  uint64    `json:"number"`      // of the newest
	Last    string    `json:"last_reason"` // of the newest, as it is
}

// LetterCount is how many letters there are of each kind, the most first.
type LetterCount struct {
	Letters int            `json:"letters"`
	Groups  []*LetterGroup `json:"groups"`
}

// kind is what letters of a group have in common.
type kind struct{ code, target, reason string }

var numbers = regexp.MustCompile(`[0-9]+`)

// kindOf looks only at what letters are counted by.
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

// Count counts letters by some of ByCode, ByTarget and ByReason. Of each it reads no more than the headers.
func (l *Letters) Count(
	ctx context.Context, filter deadletter.Filter, by []string, progress func(looked, of uint64),
) (LetterCount, error) {
	groups := make(map[kind]*LetterGroup)
	count := LetterCount{Groups: []*LetterGroup{}}
	for letter, err := range l.List(ctx, deadletter.Query{Filter: filter, HeadersOnly: true, Progress: progress}) {
		if err != nil {
			return count, err
		}
		k := kindOf(letter, by)
		g := groups[k]
		if g == nil && len(groups) >= mostGroups {
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
		g.Newest, g.Number, g.Last = letter.At.UTC(), letter.Sequence, Reason(letter)
	}
	slices.SortStableFunc(count.Groups, func(a, b *LetterGroup) int { return cmp.Compare(b.Letters, a.Letters) })
	return count, nil
}
