package journal

import "time"

// State is the state of a running writer. By the states, a reader distinguishes three kinds of instances: those without
// records, those that cannot write, and those that no longer run.
type State struct {
	Instance string    `json:"-"`
	Start    string    `json:"start"`              // random token of its start; empty from an older broker
	Unstored int       `json:"unstored,omitempty"` // records waiting or dropped, and not in a stored batch
	Since    time.Time `json:"since,omitzero"`     // time of the earliest unstored record, by the leaders' clocks
}

// of reports whether the state belongs to a start.
func (s State) of(which start) bool {
	return s.Instance == which.instance && (s.Start == "" || s.Start == which.token)
}

// State returns the state of the writer. A nil Writer belongs to a broker without a journal: State then returns nil.
// State may be called from any goroutine.
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
