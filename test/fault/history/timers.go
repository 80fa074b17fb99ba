package history

import (
	"maps"
	"slices"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/test/linear"
)

// TimerOp is one request about a named timer, which the client recorded at the end of the request. Event.ID is the
// timer, and Event.At the time of the end.
type TimerOp struct {
	Kind    linear.Kind   `json:"kind"`
	Expects int64         `json:"expects"` // as Expects of a linear.Op
	Result  linear.Result `json:"result"`
	Call    int64         `json:"call"`           // when the request was sent
	Body    string        `json:"body,omitempty"` // the new body; empty if the request kept the old one

	Every  time.Duration `json:"every,omitempty"` // for the set of a series: its interval
	Rounds int           `json:"rounds,omitempty"`
}

// namedTimer has the requests of a timer's clients, and the deliveries of each generation.
type namedTimer struct {
	ops         []Event
	generations map[uint64]*sent
}

// timerOf returns the timer of a body's id, which is <player>-<counter>.<counter>. The id of the timer is the part
// before the dot.
func (c *checker) timerOf(id string) *namedTimer {
	name, _, ok := strings.Cut(id, ".")
	if !ok {
		return nil
	}
	return c.timers[name]
}

func (c *checker) addTimer(e *Event) {
	t := c.timers[e.ID]
	if t == nil {
		t = &namedTimer{generations: make(map[uint64]*sent)}
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

// generation returns the timer's generation that the Delay-Id of a delivered message names. It reports a Delay-Id that
// names none, and returns nil.
func (c *checker) generation(t *namedTimer, e *Event) *sent {
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

// judgeTimers judges all timers. A generation that a witness received must also be in the target's stream, even if a
// client has replaced the timer meanwhile.
func (c *checker) judgeTimers() {
	for _, name := range slices.SortedFunc(maps.Keys(c.timers), byCounter) {
		t := c.timers[name]
		ops := t.requests()
		extra, series := 0, t.recurs()
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
				c.violate(Lost, s.ID, "generation %d of %s was sent, but the target's stream does not have it", g, name)
				continue
			}
			c.report.Timers.Delivered++
			c.judgeCopies(s)
			first := s.found[0]
			if series && first.Round == 0 {
				extra++
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
		c.judgeExtraFirings(name, t, extra)
		if len(ops) > 64 {
			c.violate(Incomplete, name, "%d requests and deliveries are too many to judge", len(ops))
		} else if !linear.Explain(ops) {
			c.violate(NoOrder, name, "no order explains %v", ops)
		}
	}
}

// judgeGeneration judges the target, the lateness and the body of one delivery of a generation.
func (c *checker) judgeGeneration(t *namedTimer, g uint64, s *sent, e Event) {
	if e.Subject != t.ops[0].Target {
		c.violate(WrongTarget, s.ID, "came on %s, want %s", e.Subject, t.ops[0].Target)
	}
	if e.Stored < e.Due {
		c.violate(Early, s.ID, "by %s", time.Duration(e.Due-e.Stored))
	}
	c.addLateness(s, e.Due, e.Stored)
	for _, o := range t.ops {
		if o.Timer.Body == e.ID && o.Sum != e.Sum {
			c.violate(WrongPayload, s.ID, "came as %s, want %s", e.Sum, o.Sum)
		}
		if o.Sequence == g && o.Timer.Body != "" && o.Timer.Body != e.ID {
			c.violate(WrongPayload, s.ID, "generation %d arrived with another body than %s", g, o.Timer.Body)
		}
	}
}

// judgeDue judges the times of a delivery that is no round of a series.
func (c *checker) judgeDue(t *namedTimer, g uint64, s *sent, e Event) {
	if e.Accepted != s.At {
		c.violate(WrongDue, s.ID, "accepted %d, want %d, the time of the set", e.Accepted, s.At)
	}
	for _, o := range t.ops {
		if want := s.At + int64(o.Delay); o.Sequence == g && e.Due != want {
			c.violate(WrongDue, s.ID, "due %d, want %d, a difference of %s", e.Due, want, time.Duration(want-e.Due))
		}
	}
}
