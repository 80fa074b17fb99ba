package linear

// series is what the state of a timer that recurs has besides. The zero series is that of one that fires once, or of
// none.
type series struct {
	id     uint64 // zero where nobody was told of its set
	round  int    // the pending one, or one more than there are
	rounds int
	paused bool
}

// left reports whether a round is left.
func (s series) left() bool { return s.round > 0 && s.round <= s.rounds }

// fires reports whether a delivery is that of the pending round. None comes of a pause, and none is left out.
func (s series) fires(o Op) bool {
	return !s.paused && o.Round == s.round && (s.id == 0 || o.Series == s.id)
}

// fired is the series after the delivery of a round.
func (s series) fired(o Op) series {
	if s.round == 0 {
		return series{}
	}
	return series{id: o.Series, round: s.round + 1, rounds: s.rounds}
}

// changed is the series after an op that is no delivery.
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
