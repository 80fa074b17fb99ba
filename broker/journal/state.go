package journal

import "time"

// State is the state of a running writer. By the states, a reader distinguishes instances that have no records,
// instances that cannot write, and instances that no longer run.
type State struct {
	Instance        string    `json:"-"`
	Start           string    `json:"start"`              // random token of the start; empty from an older broker
	UnstoredRecords int       `json:"unstored,omitempty"` // waiting records, and dropped ones that no batch reports
	Since           time.Time `json:"since,omitzero"`     // Record.At of the earliest unstored record; zero for none
}

// belongsTo reports whether the state belongs to a start.
func (s State) belongsTo(key start) bool {
	return s.Instance == key.instance && (s.Start == "" || s.Start == key.token)
}

// State returns the state of the writer. A nil Writer belongs to a broker without a journal: State then returns nil.
// State may be called from any goroutine.
func (w *Writer) State() *State {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	unstored := w.lostSpan.union(w.sendingSpan).union(w.openBatch.span)
	for _, b := range w.fullBatches {
		unstored = unstored.union(b.span)
	}
	s := &State{Instance: w.cfg.Instance, Start: w.start, UnstoredRecords: unstored.Records}
	if unstored.Records > 0 {
		s.Since = timeOf(unstored.First)
	}
	return s
}
