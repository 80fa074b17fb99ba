package deliver

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// snapshot is the state of the account's streams at one time. It does not change. A nil snapshot shows no stream.
type snapshot struct {
	at                 time.Time // when the list was requested
	filters            filters
	descriptions       map[string]description // by stream; a stream without a leader has its last known description
	undescribedStreams []string               // streams without a leader and without a last known description
}

// description is the entry of one stream in a list.
type description struct {
	Config struct {
		Name     string     `json:"name"`
		Subjects []string   `json:"subjects"`
		NoAck    bool       `json:"no_ack"`
		Mirror   *struct{}  `json:"mirror"`
		Sources  []struct{} `json:"sources"`
	} `json:"config"`
}

// newSnapshot returns a snapshot of a list: the descriptions of the listed streams, and the names of the streams
// without a leader. A stream without a leader keeps its description from the previous snapshot, which may be nil. The
// broker's own streams do not count as undescribed, because they listen on no targets.
func newSnapshot(
	at time.Time, listed []description, leaderless []string, previous *snapshot, ours func(string) bool,
) *snapshot {
	s := &snapshot{at: at, descriptions: make(map[string]description, len(listed))}
	for _, d := range listed {
		s.descriptions[d.Config.Name] = d
	}
	for _, name := range leaderless {
		if d, ok := previous.description(name); ok {
			s.descriptions[name] = d
		} else if ours == nil || !ours(name) {
			s.undescribedStreams = append(s.undescribedStreams, name)
		}
	}
	// In the order of names, so that equal lists show the same stream on subjects that overlap because a description is
	// out of date. A listed stream comes before a stream without a leader.
	names := slices.Sorted(maps.Keys(s.descriptions))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(leaderless, a), rank(leaderless, b)) })
	for _, name := range names {
		d := s.descriptions[name]
		ln := &listener{name: name, acks: !d.Config.NoAck}
		if len(d.Config.Subjects) == 0 && d.Config.Mirror == nil && len(d.Config.Sources) == 0 {
			s.filters.add(name, ln) // without subjects, a stream listens on its own name
		}
		for _, filter := range d.Config.Subjects {
			s.filters.add(filter, ln)
		}
	}
	return s
}

// rank returns 1 for a stream without a leader, otherwise 0.
func rank(leaderless []string, name string) int {
	if slices.Contains(leaderless, name) {
		return 1
	}
	return 0
}

func (s *snapshot) description(name string) (description, bool) {
	if s == nil {
		return description{}, false
	}
	d, ok := s.descriptions[name]
	return d, ok
}

func (s *snapshot) listener(subject string) *listener {
	if s == nil {
		return nil
	}
	return s.filters.match(subject)
}
