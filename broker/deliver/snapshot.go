package deliver

import "time"

// snapshot is the state of the account's streams at one time. It does not change. A nil snapshot shows no stream.
type snapshot struct {
	at          time.Time // when the list was requested
	filters     filters
	known       map[string]description // by stream; a stream without a leader has its last known description
	undescribed []string               // existing streams without a description in any snapshot
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

// newSnapshot returns a snapshot of a list: the described streams, and the names of the streams without a leader. A
// stream without a leader has its description from the snapshot before, which may be nil. The broker's own streams
// are left out of undescribed, because they listen on no targets.
func newSnapshot(
	at time.Time, all []description, leaderless []string, before *snapshot, ours func(string) bool,
) *snapshot {
	s := &snapshot{at: at, known: make(map[string]description, len(all))}
	for _, d := range all {
		s.known[d.Config.Name] = d
	}
	for _, name := range leaderless {
		if d, was := before.described(name); was {
			s.known[name] = d
		} else if ours == nil || !ours(name) {
			s.undescribed = append(s.undescribed, name)
		}
	}
	for name, d := range s.known {
		h := &holder{name: name, acks: !d.Config.NoAck}
		if len(d.Config.Subjects) == 0 && d.Config.Mirror == nil && len(d.Config.Sources) == 0 {
			s.filters.add(name, h) // without subjects, a stream listens on its own name
		}
		for _, filter := range d.Config.Subjects {
			s.filters.add(filter, h)
		}
	}
	return s
}

// described returns the description of a stream, if there is one.
func (s *snapshot) described(name string) (description, bool) {
	if s == nil {
		return description{}, false
	}
	d, ok := s.known[name]
	return d, ok
}

// holder returns the stream that listens on a subject, or nil.
func (s *snapshot) holder(subject string) *holder {
	if s == nil {
		return nil
	}
	return s.filters.match(subject)
}
