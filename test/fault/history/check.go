package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is a promise that was broken.
type Kind string

// The kinds.
const (
	Lost         Kind = "lost"          // accepted, and neither delivered nor a dead letter
	LostOnServer Kind = "server lacks"  // delivered, but not every server has it, or not the same
	Early        Kind = "early"         // stored at the target before it was due
	WrongDue     Kind = "wrong due"     // the broker's due is not acceptance plus delay
	WrongID      Kind = "wrong id"      // its Delay-Id is another's, or there are two
	Unexpected   Kind = "unexpected"    // nobody published it, or its publish failed
	WrongTarget  Kind = "wrong target"  // it came elsewhere
	WrongPayload Kind = "wrong payload" // body or headers are not what was published
	Duplicate    Kind = "stored twice"  // the target's stream has a copy within its window
	Repeated     Kind = "sent twice"    // in a run without an excuse for it
	DeadLetter   Kind = "dead letter"   // these runs publish nothing that deserves it
	TooLate      Kind = "too late"      // beyond the bound, counted from the end of the faults
	TooSlow      Kind = "too slow"      // a broker was not ready in time
	Settled      Kind = "not settled"   // sent twice though all faults had ended long before
	NotKept      Kind = "not kept"      // what a run watched by itself
	LeftBehind   Kind = "left behind"   // a lane is not empty at rest
	NoOrder      Kind = "no order"      // in which what was told and delivered of a timer is right: see package linear
	Incomplete   Kind = "incomplete"    // the history does not hold what it takes to judge
)

// Violation is one broken promise.
type Violation struct {
	Kind Kind
	ID   string // of a message, or empty
	What string
}

func (v Violation) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", v.Kind, v.ID, v.What))
}

// sent is a message as its publisher knows it.
type sent struct {
	Event                 // the invocation
	answer *Event         // nil while there is none
	found  []Event        // in the target's stream, one for each sequence
	seen   map[string]int // by witness
	first  int64          // when the first witness saw it
	dead   bool
}

func (s *sent) acked() bool { return s.answer != nil && s.answer.Phase == OK }

func (s *sent) arrived() bool { return len(s.found) > 0 || s.Core && len(s.seen) > 0 }

func (s *sent) failed() bool { return s.answer != nil && s.answer.Phase == Fail }

// checker is one judgement.
type checker struct {
	conditions Conditions
	faults     []Period
	sent       map[string]*sent
	timers     map[string]*timed
	byServer   map[string]map[uint64]Event // what the target's stream holds
	read       map[string]bool
	report     *Report
}

// Check judges a history.
func Check(events []Event) *Report {
	c := &checker{sent: make(map[string]*sent), byServer: make(map[string]map[uint64]Event), read: make(map[string]bool),
		timers: make(map[string]*timed), report: &Report{}}
	if len(events) == 0 || events[0].Conditions == nil {
		c.violate(Incomplete, "", "it does not begin with the conditions of a run")
		return c.report
	}
	c.conditions = *events[0].Conditions
	c.report.Conditions = c.conditions
	for i := range events {
		c.take(&events[i])
	}
	c.closeFaults()
	c.takeSeen(events)
	c.compareServers()
	ids := slices.SortedFunc(maps.Keys(c.sent), byCounter)
	for _, id := range ids {
		c.judge(c.sent[id])
	}
	c.judgeTimers()
	c.findLost(ids)
	c.checkIDs(ids)
	c.checkTraffic(events)
	c.report.finish(c.faults)
	return c.report
}

func (c *checker) violate(kind Kind, id, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{kind, id, fmt.Sprintf(format, args...)})
}

// take sorts one event in.
func (c *checker) take(e *Event) {
	switch e.Op {
	case Fault:
		c.takeFault(e)
	case Publish:
		c.takePublish(e)
	case Timer:
		c.takeTimer(e)
	case Stored:
		if c.byServer[e.Server] == nil {
			c.byServer[e.Server] = make(map[uint64]Event)
		}
		c.byServer[e.Server][e.Sequence] = *e
	case Read:
		c.read[e.Server] = true
	case Dead:
		c.violate(DeadLetter, e.ID, "%s", e.Text)
		if c.timerOf(e.ID) != nil {
			break
		}
		if s := c.known(e); s != nil {
			s.dead = true
		}
	case Rest:
		if e.Count > 0 {
			c.violate(LeftBehind, "", "%s holds %d messages", e.Stream, e.Count)
		}
	case Ready:
		c.report.Starts++
		c.report.SlowestStart = max(c.report.SlowestStart, e.Delay)
		if most := c.conditions.Ready; most > 0 && e.Delay > most {
			c.violate(TooSlow, "", "%s was ready after %s, want %s", e.Text, short(e.Delay), most)
		}
	case Broken:
		c.violate(NotKept, "", "%s", e.Text)
	}
}

// takeSeen gives each publish, and each generation of a timer, what witnesses saw of it. One may see a timer before its
// client has the answer.
func (c *checker) takeSeen(events []Event) {
	for i := range events {
		e := &events[i]
		if e.Op != Seen {
			continue
		}
		s := c.cause(e)
		if s == nil {
			continue
		}
		if s.seen == nil {
			s.seen = make(map[string]int)
		}
		s.seen[e.Server]++
		if s.first == 0 {
			s.first = e.At
		}
	}
}

// cause is what a message came of: the generation of a timer, or a publish.
func (c *checker) cause(e *Event) *sent {
	if t := c.timerOf(e.ID); t != nil {
		return c.generation(t, e)
	}
	return c.known(e)
}

func (c *checker) takePublish(e *Event) {
	s := c.sent[e.ID]
	switch {
	case e.Phase == Invoke && s != nil:
		c.violate(Incomplete, e.ID, "published twice")
	case e.Phase == Invoke:
		c.sent[e.ID] = &sent{Event: *e}
		c.report.Attempted++
	case s == nil || s.answer != nil:
		c.violate(Incomplete, e.ID, "an answer without a publish")
	default:
		s.answer = e
		switch e.Phase {
		case OK:
			c.report.Acked++
		case Fail:
			c.report.Failed++
		}
	}
}

// known is the publish of a message that came.
func (c *checker) known(e *Event) *sent {
	s := c.sent[e.ID]
	switch {
	case s == nil:
		c.violate(Unexpected, e.ID, "%s on %s, and nobody published it", e.Op, e.Subject)
	case s.failed():
		c.violate(Unexpected, e.ID, "%s on %s, and its publish had failed: %s", e.Op, e.Subject, s.answer.Text)
	}
	return s
}

// compareServers holds the copies of the target's stream against each other, and gives each publish what was found of
// it.
func (c *checker) compareServers() {
	all := make(map[uint64]Event)
	for _, held := range c.byServer {
		maps.Copy(all, held)
	}
	for _, server := range c.conditions.Servers {
		if !c.read[server] {
			c.violate(Incomplete, "", "what %s holds was not read", server)
			continue
		}
		for seq, want := range all {
			got, ok := c.byServer[server][seq]
			got.At, got.Server = want.At, want.Server
			switch {
			case !ok:
				c.violate(LostOnServer, want.ID, "%s lacks sequence %d of the target", server, seq)
			case got != want:
				c.violate(LostOnServer, want.ID, "%s holds another message as sequence %d of the target: %s", server, seq, got.ID)
			}
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(all)) {
		e := all[seq]
		if s := c.cause(&e); s != nil {
			s.found = append(s.found, e)
		}
	}
}
