package journal

import "time"

// State is what a writer that runs says of itself, to whoever reads the journal. A reader who asks shortly before it
// reads can tell an instance that has nothing to write from one that is gone, and from one that cannot write.
type State struct {
	Instance string    `json:"-"`
	Start    string    `json:"start"`              // tells its starts apart; empty of an older broker, which does not say
	Unstored int       `json:"unstored,omitempty"` // records that wait, or were dropped, and that no stored batch mentions
	Since    time.Time `json:"since,omitzero"`     // the earliest of them, by the clocks of the leaders of lanes
}

// of reports whether it is the state of this start.
func (s State) of(which start) bool {
	return s.Instance == which.instance && (s.Start == "" || s.Start == which.token)
}

// State is what the writer has not stored yet. A nil Writer, of a broker that keeps no journal, has none. It may be
// called from any goroutine.
func (w *Writer) State() *State {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	unstored := w.lost.add(w.sending).add(w.open.span)
	for _, b := range w.full {
		unstored = unstored.add(b.span)
	}
	s := &State{Instance: w.cfg.Instance, Start: w.start, Unstored: unstored.Records}
	if unstored.Records > 0 {
		s.Since = at(unstored.First)
	}
	return s
}
