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
	Targets    int       `json:"targets"` // number of different targets
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

// numbers has the numbers that differ between equal reasons. The others are codes, as in (503).
var numbers = regexp.MustCompile(`\([0-9]+\)|[0-9]+`)

// ReasonGroup returns the reason of a letter with # in place of each number, except a code in parentheses.
func ReasonGroup(l deadletter.Letter) string {
	return numbers.ReplaceAllStringFunc(Reason(l), func(number string) string {
		if number[0] == '(' {
			return number
		}
		return "#"
	})
}

func keyOf(l deadletter.Letter, by []string) (k groupKey) {
	if slices.Contains(by, ByCode) {
		k.code = string(l.Code)
	}
	if slices.Contains(by, ByTarget) {
		k.target = cmp.Or(l.Target, "-")
	}
	if slices.Contains(by, ByReason) {
		k.reason = ReasonGroup(l)
	}
	return k
}

// Count counts the letters for which keep returns true by some of ByCode, ByTarget and ByReason. It reads only the
// headers.
func (l *Letters) Count(
	ctx context.Context, filter deadletter.Filter, by []string, keep func(deadletter.Letter) bool,
	progress func(read, total uint64),
) (LetterCount, error) {
	groups, seen := make(map[groupKey]*LetterGroup), make(map[groupKey]bool)
	count := LetterCount{Groups: []*LetterGroup{}}
	for letter, err := range l.List(ctx, deadletter.Query{Filter: filter, HeadersOnly: true, Progress: progress}) {
		if err != nil {
			return count, err
		}
		if !keep(letter) {
			continue
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
		if t := (groupKey{k.code, cmp.Or(letter.Target, "-"), k.reason}); !seen[t] && len(seen) < maxGroups {
			seen[t] = true
			g.Targets++
		}
		count.Letters++
		g.Letters++
		g.Newest, g.Number, g.LastReason = letter.At.UTC(), letter.Sequence, Reason(letter)
	}
	slices.SortStableFunc(count.Groups, func(a, b *LetterGroup) int { return cmp.Compare(b.Letters, a.Letters) })
	return count, nil
}

// LetterCount returns the number of dead letters.
func (i *Inspector) LetterCount(ctx context.Context) (uint64, error) {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	s, err := i.JetStream.Stream(ctx, i.names.DeadStream())
	if err != nil {
		return 0, Cause(ctx, err)
	}
	return s.CachedInfo().State.Msgs, nil
}
