package history

import (
	"time"

	"delaybroker/test/linear"
)

// ExtraFiring is the kind of a TimerOp that asks for one delivery besides a series.
const ExtraFiring linear.Kind = "extra firing"

// recurs reports whether it is a series. A key is set as such, or is not, all the time.
func (t *timed) recurs() bool {
	for _, o := range t.ops {
		if o.Timer.Rounds > 0 {
			return true
		}
	}
	return false
}

// asked is what was asked of a timer, as package linear has it.
func (t *timed) asked() (ops []linear.Op) {
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

// judgeRound holds the times of one occurrence against its series: it was accepted when that was set, and is due by the
// table, unless somebody has moved it.
func (c *checker) judgeRound(t *timed, g uint64, s *sent, e Event) {
	for _, o := range t.ops {
		if o.Timer.Kind != linear.Set { // a resume may tell of the series that stands there, and has not set it
			continue
		}
		if o.Sequence == e.Series && (e.Accepted < o.Timer.Call || e.Accepted > o.At) {
			c.violate(WrongDue, s.ID, "round %d was accepted %d, and its series between %d and %d", e.Round, e.Accepted,
				o.Timer.Call, o.At)
		}
	}
	for _, o := range t.ops {
		switch soonest := o.Timer.Call + int64(o.Delay); {
		case o.Timer.Kind != linear.Move || o.Timer.Result == linear.Refused || o.Delay == 0:
		case o.Timer.Result == linear.Unknown:
			return // it may be this one that was moved, and nobody was told when to
		case o.Sequence != g:
		case e.Due < soonest || e.Due > o.At+int64(o.Delay):
			c.violate(WrongDue, s.ID, "due %d, and it was moved to between %d and %d", e.Due, soonest, o.At+int64(o.Delay))
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
			c.violate(WrongDue, s.ID, "round %d is due %s after it was set, which is no time of its table", e.Round, after)
		}
	}
}

// resumed reports whether a series may have gone on, before a generation, at the next time of its table from then on:
// after a pause, or under another table. If a round was moved and came early, that may be the time of that round.
func (t *timed) resumed(g uint64) bool {
	for _, o := range t.ops {
		again := o.Timer.Kind == linear.Retime || o.Timer.Kind == linear.Move && o.Delay == 0
		if again && o.Timer.Result != linear.Refused && o.Sequence <= g { // no sequence: nobody was told
			return true
		}
	}
	return false
}

// judgeExtraFirings holds what came besides a series against what was asked for: each once.
func (c *checker) judgeExtraFirings(name string, t *timed, came int) {
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
		c.violate(Lost, name, "%d deliveries besides were promised, and %d came", done, came)
	case came > done+perhaps:
		c.violate(Unexpected, name, "%d deliveries came besides, and %d were asked for", came, done+perhaps)
	}
}
