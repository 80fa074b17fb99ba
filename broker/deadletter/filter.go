package deadletter

import (
	"slices"
	"time"

	"delaybroker/broker/message"
)

// A message may have an earlier timestamp than the message before it, because the clock of a new leader may be behind,
// or a clock may be set back. Filter assumes that the timestamp is earlier by at most clockSkew.
const clockSkew = time.Minute

// Filter selects the letters that match every field. An empty field matches all letters, and a list matches a letter if
// one of its values does. IDs and Sequences count as one list.
type Filter struct {
	Codes     []message.Code
	Target    string       // a NATS pattern
	Since     time.Time    // stored at this time or later
	Until     time.Time    // stored before this time
	IDs       []message.ID // Delay-Ids
	Sequences []uint64     // numbers of letters
}

// SelectsAll reports whether the filter selects every letter.
func (f Filter) SelectsAll() bool {
	return len(f.Codes) == 0 && f.Target == "" && f.Since.IsZero() && f.Until.IsZero() && !f.listsLetters()
}

func (f Filter) listsLetters() bool { return len(f.IDs)+len(f.Sequences) > 0 }

// Match reports whether the filter selects a letter.
func (f Filter) Match(l Letter) bool {
	switch {
	case len(f.Codes) > 0 && !slices.Contains(f.Codes, l.Code),
		f.Target != "" && !message.Match(f.Target, l.Letter.Target),
		!f.Since.IsZero() && l.At.Before(f.Since),
		!f.Until.IsZero() && !l.At.Before(f.Until):
		return false
	}
	return !f.listsLetters() || slices.Contains(f.Sequences, l.Sequence) ||
		slices.ContainsFunc(f.IDs, func(id message.ID) bool { return id.String() == l.ID })
}

// subjects returns the filters of a consumer that match the subjects of all selected letters, or nil if no filter is
// needed. No two filters overlap, because the server forbids that.
func (f Filter) subjects(n message.Names) []string {
	codes := slices.Clone(f.Codes)
	slices.Sort(codes)
	codes = slices.Compact(codes)
	switch {
	case len(codes) == 0 && f.Target == "":
		return nil
	case len(codes) == 0:
		codes = []message.Code{"*"}
	}
	targets := []string{f.Target}
	if f.Target == "" {
		targets = []string{"", ">"}
	}
	var subjects []string
	for _, c := range codes {
		for _, target := range targets {
			subjects = append(subjects, n.Dead(c, target))
		}
	}
	return subjects
}

// bounds returns the lowest and the highest sequence to read for a filter with Sequences and without IDs, and otherwise
// zeros.
func (f Filter) bounds() (first, last uint64) {
	if len(f.IDs) > 0 || len(f.Sequences) == 0 {
		return 0, 0
	}
	return slices.Min(f.Sequences), slices.Max(f.Sequences)
}

// minTimestamp returns a lower bound of the timestamps of the selected letters, or the zero time.
func (f Filter) minTimestamp() time.Time {
	earliest := f.Since
	if len(f.IDs) > 0 && len(f.Sequences) == 0 { // a message becomes a dead letter after its acceptance
		accepted := slices.MinFunc(f.IDs, func(a, b message.ID) int { return a.At.Compare(b.At) }).At
		if accepted.After(earliest) {
			earliest = accepted
		}
	}
	if earliest.IsZero() {
		return earliest
	}
	return earliest.Add(-clockSkew)
}
