package history

import (
	"maps"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/linear"
)

// TimerOp is one request about a named timer, as its client knows it when it ends. Event.ID is the timer, and Event.At
// when the request ended.
type TimerOp struct {
	Kind    linear.Kind   `json:"kind"`
	Expects int64         `json:"expects"` // a generation, 0 for none, -1 for whatever there is
	Result  linear.Result `json:"result"`
	Call    int64         `json:"call"`           // when it was sent
	Body    string        `json:"body,omitempty"` // what it set; empty if it took what was there

	Every  time.Duration `json:"every,omitempty"` // of the set of a series
	Rounds int           `json:"rounds,omitempty"`
}

// timed is a timer as its clients know it, with what came of it.
type timed struct {
	ops         []Event
	generations map[uint64]*sent
}

// timerOf is the timer to which the id at the beginning of a body belongs: <player>-<counter>.<counter>.
func (c *checker) timerOf(id string) *timed {
	name, _, ok := strings.Cut(id, ".")
	if !ok {
		return nil
	}
	return c.timers[name]
}

func (c *checker) takeTimer(e *Event) {
	t := c.timers[e.ID]
	if t == nil {
		t = &timed{generations: make(map[uint64]*sent)}
		c.timers[e.ID] = t
		c.report.Timers.Keys++
	}
	t.ops = append(t.ops, *e)
	switch o := e.Timer; {
	case o.Result == linear.Unknown:
		c.report.Timers.Unknown++
	case o.Result == linear.Done && o.Kind == linear.Cancel:
		c.report.Timers.Cancelled++
	case o.Result == linear.Refused && o.Kind == linear.Cancel:
		c.report.Timers.TooLate++
	case o.Result == linear.Done && o.Kind != linear.Set && o.Kind != ExtraFiring:
		c.report.Timers.Changed++
	}
}

// generation is that of a timer of which a message came, if its id says so.
func (c *checker) generation(t *timed, e *Event) *sent {
	id, err := message.ParseID(e.DelayID)
	if err != nil || id.Stream != "DELAY_TIMERS" {
		c.violate(WrongID, e.ID, "its Delay-Id is %q", e.DelayID)
		return nil
	}
	s := t.generations[id.Sequence]
	if s == nil {
		s = &sent{Event: Event{ID: e.ID, At: id.At.UnixNano()}}
		t.generations[id.Sequence] = s
	}
	return s
}

// judgeTimers judges all timers. Whoever puts what over a firing: it is delivered.
func (c *checker) judgeTimers() {
	for _, name := range slices.SortedFunc(maps.Keys(c.timers), byCounter) {
		t := c.timers[name]
		ops := t.asked()
		besides, series := 0, t.recurs()
		for _, g := range slices.Sorted(maps.Keys(t.generations)) {
			s := t.generations[g]
			c.judgeRepeats(s)
			for _, e := range s.found {
				c.judgeGeneration(t, g, s, e)
				if series && e.Round > 0 {
					c.judgeRound(t, g, s, e)
				} else {
					c.judgeDue(t, g, s, e)
				}
			}
			if len(s.found) == 0 {
				c.violate(Lost, s.ID, "generation %d of %s was sent, and the target does not have it", g, name)
				continue
			}
			c.report.Timers.Delivered++
			c.judgeCopies(s)
			first := s.found[0]
			if series && first.Round == 0 {
				besides++
				continue
			}
			if series {
				c.report.Timers.Rounds++
			}
			ops = append(ops, linear.Op{
				Kind: linear.Fire, Result: linear.Done, Sequence: g, Call: time.Unix(0, s.At),
				Return: time.Unix(0, first.Stored), Round: first.Round, Series: first.Series,
			})
		}
		c.judgeExtraFirings(name, t, besides)
		if len(ops) > 64 {
			c.violate(Incomplete, name, "there are %d requests: too many to judge", len(ops))
		} else if !linear.Explain(ops) {
			c.violate(NoOrder, name, "no order explains %v", ops)
		}
	}
}

// judgeGeneration holds what came of a timer against the set that it came of, as far as its client knows which that is.
func (c *checker) judgeGeneration(t *timed, g uint64, s *sent, e Event) {
	if e.Subject != t.ops[0].Target {
		c.violate(WrongTarget, s.ID, "came on %s, want %s", e.Subject, t.ops[0].Target)
	}
	if e.Stored < e.Due {
		c.violate(Early, s.ID, "by %s", time.Duration(e.Due-e.Stored))
	}
	c.takeLateness(s, e.Due, e.Stored)
	for _, o := range t.ops {
		if o.Timer.Body == e.ID && o.Sum != e.Sum {
			c.violate(WrongPayload, s.ID, "came as %s, want %s", e.Sum, o.Sum)
		}
		if o.Sequence == g && o.Timer.Body != "" && o.Timer.Body != e.ID {
			c.violate(WrongPayload, s.ID, "generation %d was set as %s", g, o.Timer.Body)
		}
	}
}

// judgeDue holds the times of what fires once against its set.
func (c *checker) judgeDue(t *timed, g uint64, s *sent, e Event) {
	if e.Accepted != s.At {
		c.violate(WrongDue, s.ID, "accepted %d, want %d, when it was set", e.Accepted, s.At)
	}
	for _, o := range t.ops {
		if want := s.At + int64(o.Delay); o.Sequence == g && e.Due != want {
			c.violate(WrongDue, s.ID, "due %d, want %d, which is %s later", e.Due, want, time.Duration(want-e.Due))
		}
	}
}
