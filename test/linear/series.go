package linear

// series is the additional state of a series. The zero value is for a timer that fires once, and for no timer.
type series struct {
	id     uint64 // zero if no client learned the sequence of its set
	round  int    // number of the pending round; above rounds if none is left
	rounds int
	paused bool
}

// left reports whether a round is left.
func (s series) left() bool { return s.round > 0 && s.round <= s.rounds }

// fires reports whether a delivery is that of the pending round. A paused series delivers no round, and no round is
// left out.
func (s series) fires(o Op) bool {
	return !s.paused && o.Round == s.round && (s.id == 0 || o.Series == s.id)
}

// fired returns the series after the delivery of a round.
func (s series) fired(o Op) series {
	if s.round == 0 {
		return series{}
	}
	return series{id: o.Series, round: s.round + 1, rounds: s.rounds}
}

// changed returns the series after an op that is not a delivery.
func (s series) changed(o Op) series {
	switch o.Kind {
	case Set:
		if o.Rounds == 0 {
			return series{}
		}
		return series{id: o.Sequence, round: 1, rounds: o.Rounds}
	case Cancel:
		return series{}
	case Pause:
		s.paused = true
	case Move:
		s.paused = false
	}
	return s
}
