package history

import (
	"time"

	"delaybroker/test/linear"
)

// ExtraFiring is the kind of a TimerOp that requests one delivery in addition to the rounds of a series.
const ExtraFiring linear.Kind = "extra firing"

// recurs reports whether the timer is a series. Players use a key either only for series or never for series.
func (t *namedTimer) recurs() bool {
	for _, o := range t.ops {
		if o.Timer.Rounds > 0 {
			return true
		}
	}
	return false
}

// requests returns the requests about a timer as operations of package linear.
func (t *namedTimer) requests() (ops []linear.Op) {
	for _, e := range t.ops {
		if e.Timer.Kind == ExtraFiring {
			continue
		}
		ops = append(ops, linear.Op{
			Kind: e.Timer.Kind, Expects: e.Timer.Expects, Result: e.Timer.Result, Sequence: e.Sequence, Rounds: e.Timer.Rounds,
			Call: time.Unix(0, e.Timer.Call), Return: time.Unix(0, e.At),
		})
	}
	return ops
}

// judgeRound compares the times of one round with its series. The round was accepted when the series was set, and is
// due at a time of its table, unless a client has moved it.
func (c *checker) judgeRound(t *namedTimer, g uint64, s *sent, e Event) {
	for _, o := range t.ops {
		if o.Timer.Kind != linear.Set { // a resumption that changed nothing has its set's sequence
			continue
		}
		if o.Sequence == e.Series && (e.Accepted < o.Timer.Call || e.Accepted > o.At) {
			c.violate(WrongDue, s.ID, "round %d was accepted %d, but its series between %d and %d", e.Round, e.Accepted,
				o.Timer.Call, o.At)
		}
	}
	for _, o := range t.ops {
		switch soonest := o.Timer.Call + int64(o.Delay); {
		case o.Timer.Kind != linear.Move || o.Timer.Result == linear.Refused || o.Delay == 0:
		case o.Timer.Result == linear.Unknown:
			return // a client may have moved this round without learning the time
		case o.Sequence != g:
		case e.Due < soonest || e.Due > o.At+int64(o.Delay):
			c.violate(WrongDue, s.ID, "due %d, but a client moved it to between %d and %d", e.Due, soonest, o.At+int64(o.Delay))
			return
		default:
			return
		}
	}
	for _, o := range t.ops {
		if o.Timer.Body != e.ID || o.Timer.Every == 0 {
			continue
		}
		soonest := time.Duration(e.Round) * o.Timer.Every
		if t.resumed(g) {
			soonest = o.Timer.Every
		}
		if after := time.Duration(e.Due - e.Accepted); after < soonest || after%o.Timer.Every != 0 {
			c.violate(WrongDue, s.ID, "round %d is due %s after the set, which is not a time of its table", e.Round, after)
		}
	}
}

// resumed reports whether a client may have resumed the series or changed its table before a generation. Then the
// series continues at the table's next time. That may be the planned time of a round that already fired, because a
// client moved the round to an earlier time.
func (t *namedTimer) resumed(g uint64) bool {
	for _, o := range t.ops {
		again := o.Timer.Kind == linear.Retime || o.Timer.Kind == linear.Move && o.Delay == 0
		if again && o.Timer.Result != linear.Refused && o.Sequence <= g { // Sequence is zero if no client learned it
			return true
		}
	}
	return false
}

// judgeExtraFirings compares the extra deliveries of a series with the requests. Each acknowledged request must have
// one delivery.
func (c *checker) judgeExtraFirings(name string, t *namedTimer, came int) {
	done, perhaps := 0, 0
	for _, o := range t.ops {
		switch {
		case o.Timer.Kind != ExtraFiring:
		case o.Timer.Result == linear.Done:
			done++
		case o.Timer.Result == linear.Unknown:
			perhaps++
		}
	}
	switch {
	case came < done:
		c.violate(Lost, name, "%d extra firings were acknowledged, but %d arrived", done, came)
	case came > done+perhaps:
		c.violate(Unexpected, name, "%d extra firings arrived, but at most %d requests succeeded", came, done+perhaps)
	}
}
