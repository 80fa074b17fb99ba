package journal

import "time"

// State is the state of a running writer. A reader that asks for it shortly before it reads can distinguish an instance
// without records from one that is gone and from one that cannot write.
type State struct {
	Instance string    `json:"-"`
	Start    string    `json:"start"`              // random token of its start; empty from an older broker
	Unstored int       `json:"unstored,omitempty"` // records that wait or were dropped, and are in no stored batch
	Since    time.Time `json:"since,omitzero"`     // time of the earliest of them, by the clocks of the leaders of lanes
}

// of reports whether the state belongs to a start.
func (s State) of(which start) bool {
	return s.Instance == which.instance && (s.Start == "" || s.Start == which.token)
}

// State returns the state of the writer. A nil Writer belongs to a broker without a journal and has none. State may be
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
